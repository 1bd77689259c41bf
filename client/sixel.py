# SPDX-License-Identifier: Apache-2.0
# Prints the body of a sixel sequence (DEC, VT330/VT340 Programmer Reference Manual) for PICTURE, the
# base64 of a picture file. mcp-python repl runs it in a copy of the session, so a picture is decoded
# in the jail of the script that made it.
import base64, io, re
from PIL import Image

image = Image.open(io.BytesIO(base64.b64decode(PICTURE))).convert("RGBA")
image.thumbnail((800, 600))
flat = Image.new("RGB", image.size, "white")
flat.paste(image, mask=image.getchannel("A"))
flat = flat.quantize(64)
width, height = flat.size
pixels, palette = flat.tobytes(), flat.getpalette()
# A column of six pixels is one character, "?" and the bits of the pixels that have the colour.
character = bytes(range(63, 127)) + bytes(192)
out = ['"1;1;%d;%d' % (width, height)]
for colour in sorted(set(pixels)):
    parts = palette[3 * colour:3 * colour + 3]
    out.append("#%d;2;%d;%d;%d" % (colour, *(part * 100 // 255 for part in parts)))
for top in range(0, height, 6):
    rows = [pixels[y * width:(y + 1) * width] for y in range(top, min(top + 6, height))]
    for colour in sorted(set(b"".join(rows))):
        bits = 0
        for n, row in enumerate(rows):
            has = bytearray(256)
            has[colour] = 1 << n
            bits |= int.from_bytes(row.translate(has), "big")
        line = bits.to_bytes(width, "big").translate(character).decode()
        line = re.sub(r"(.)\1{3,}", lambda run: "!%d%s" % (len(run[0]), run[1]), line)
        out.append("#%d%s$" % (colour, line))
    out.append("-")
print("".join(out))
