/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-unpack.   Owns: the JSON of an image, while it is read.
 * Reads:   an image that a stranger may have made. */
#include "image/image.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <jansson.h>

#include "base/member.h"
#include "base/own.h"
#include "base/why.h"
#include "image/blobs.h"
#include "image/layer.h"

#define LAYERS_MAX 500
#define INDEX_DEPTH_MAX 3		/* indexes in an index */
#define BLOB_NAME "blobs/sha256/"
#define BLOB_NAME_SIZE (sizeof(BLOB_NAME) + SPOOL_HEX)

struct image {
	struct blobs blobs;
	json_t *manifest;		/* what names the layers */
	json_t *config;			/* what has their hashes */
	struct why *why;
};

/* ---- what may be in JSON ---- */

/* The digits of "sha256:..."; NULL: it is none. */
static const char *
hex_of(const char *digest)
{
	static const char kind[] = "sha256:";
	const char *hex = digest + strlen(kind);

	if (strncmp(digest, kind, strlen(kind)) != 0 || strlen(hex) != SPOOL_HEX ||
	    strspn(hex, "0123456789abcdef") != SPOOL_HEX)
		return NULL;
	return hex;
}

static int
blob_name(const json_t *descriptor, char name_r[BLOB_NAME_SIZE], struct why *why_r)
{
	const char *hex = hex_of(member_text_or_empty(descriptor, "digest"));

	if (!hex)
		return why_say(why_r, -EBADMSG, "", "the image names a part without its SHA-256");
	snprintf(name_r, BLOB_NAME_SIZE, BLOB_NAME "%s", hex);
	return 0;
}

static json_t *
read_blob(struct image *image, const json_t *descriptor)
{
	char name[BLOB_NAME_SIZE];

	if (blob_name(descriptor, name, image->why) < 0)
		return NULL;
	return blobs_json(&image->blobs, name, name + strlen(BLOB_NAME), image->why);
}

/* ---- for this machine ---- */

static const char *
own_architecture(void)
{
	static const struct {
		const char *machine, *name;
	} known[] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };
	static struct utsname names;

	uname(&names);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(names.machine, known[i].machine) == 0)
			return known[i].name;
	return names.machine;
}

static bool
is_for_here(const json_t *platform)
{
	const char *system = member_text_or_empty(platform, "os");
	const char *machine = member_text_or_empty(platform, "architecture");

	return (!*system || strcmp(system, "linux") == 0) &&
	       (!*machine || strcmp(machine, own_architecture()) == 0);
}

/* ---- the two forms ---- */

/* manifest.json of docker save: [{"Config": name, "Layers": [name, ...]}]. */
static int
read_docker(struct image *image)
{
	const json_t *one = json_array_get(image->manifest, 0);
	const char *name = member_text_or_empty(one, "Config"), *base = strrchr(name, '/');
	char digest[sizeof("sha256:") + SPOOL_HEX] = "";

	if (json_array_size(image->manifest) != 1)
		return why_say(image->why, -EBADMSG, "", "it holds %zu images, and has to hold one",
			       json_array_size(image->manifest));
	base = base ? base + 1 : name;
	/* The name of the file is its hash, with or without ".json" at the end. */
	if (strlen(base) >= SPOOL_HEX)
		snprintf(digest, sizeof(digest), "sha256:%.*s", SPOOL_HEX, base);
	image->config = blobs_json(&image->blobs, name, hex_of(digest), image->why);
	return image->config ? 0 : -EBADMSG;
}

/* index.json of an OCI layout leads to the manifest, by way of other indexes. */
static int
read_oci(struct image *image)
{
	for (int depth = 0;; depth++) {
		const json_t *list = json_object_get(image->manifest, "manifests"), *one = NULL;
		json_t *next, *each;
		size_t i, fit = 0;

		if (!list)
			break;
		json_array_foreach(list, i, each) {
			if (is_for_here(json_object_get(each, "platform"))) {
				one = each;
				fit++;
			}
		}
		if (fit != 1 || depth == INDEX_DEPTH_MAX)
			return why_say(image->why, -EBADMSG, "",
				       "it holds %zu images for this machine, and has to hold one",
				       fit);
		next = read_blob(image, one);
		if (!next)
			return -EBADMSG;
		json_decref(image->manifest);
		image->manifest = next;
	}
	image->config = read_blob(image, json_object_get(image->manifest, "config"));
	return image->config ? 0 : -EBADMSG;
}

static int
layer_name(struct image *image, bool docker, size_t i, char name_r[PATH_MAX])
{
	const json_t *one = docker ? json_array_get(image->manifest, 0) : image->manifest;
	const json_t *layer = json_array_get(json_object_get(one, docker ? "Layers" : "layers"), i);
	const char *name = json_string_value(layer);

	if (!docker)
		return blob_name(layer, name_r, image->why);
	if (!name || strlen(name) >= PATH_MAX)
		return why_say(image->why, -EBADMSG, "", "the image names a layer by no text");
	strcpy(name_r, name);
	return 0;
}

/* ---- layers ---- */

/* Makes an uncompressed copy of a layer, checks its hash against the image's, and unpacks it. */
static int
unpack_layer(struct image *image, struct layer_tree *tree, const char *name, const char *digest)
{
	const char *hex = hex_of(digest);
	own_fd int file = blobs_open(&image->blobs, name), plain = -1;
	char sum[SPOOL_HEX + 1];
	struct why why;

	if (file < 0)
		return why_say(image->why, file, "", "the layer %.200s: %s", name, strerror(-file));
	plain = spool_copy(file, tree->top, true, &tree->room, sum, &why);
	if (plain < 0)
		return why_say(image->why, plain, "", "the layer %.200s: %s", name, why.text);
	if (!hex || strcmp(hex, sum) != 0)
		return why_say(image->why, -EBADMSG, "",
			       "the layer %.200s is not what the image says: its SHA-256 is %s", name,
			       sum);
	if (layer_unpack(tree, plain, true, &why) < 0)
		return why_say(image->why, -EBADMSG, "", "the layer %.200s: %s", name, why.text);
	return 0;
}

static int
unpack_layers(struct image *image, struct layer_tree *tree, bool docker)
{
	const json_t *one = docker ? json_array_get(image->manifest, 0) : image->manifest;
	const json_t *hashes = json_object_get(json_object_get(image->config, "rootfs"), "diff_ids");
	size_t n = json_array_size(json_object_get(one, docker ? "Layers" : "layers"));
	int r = 0;

	if (!is_for_here(image->config))
		return why_say(image->why, -EBADMSG, "", "the image is for %.32s and %.32s",
			       member_text_or_empty(image->config, "os"),
			       member_text_or_empty(image->config, "architecture"));
	if (n == 0 || n > LAYERS_MAX || json_array_size(hashes) != n)
		return why_say(image->why, -EBADMSG, "",
			       "the image has %zu layers, and hashes of %zu", n,
			       json_array_size(hashes));
	for (size_t i = 0; i < n && r == 0; i++) {
		const char *digest = json_string_value(json_array_get(hashes, i));
		char name[PATH_MAX];

		r = layer_name(image, docker, i, name);
		if (r == 0)
			r = unpack_layer(image, tree, name, digest ? digest : "");
	}
	return r;
}

static int
unpack(struct image *image, struct layer_tree *tree)
{
	bool docker;
	int r;

	image->manifest = blobs_json(&image->blobs, "manifest.json", NULL, image->why);
	docker = image->manifest != NULL;
	if (!docker)
		image->manifest = blobs_json(&image->blobs, "index.json", NULL, image->why);
	if (!image->manifest)
		return why_say(image->why, -EBADMSG, "", "it is not an image: it has neither "
			       "manifest.json nor index.json that can be read");
	r = docker ? read_docker(image) : read_oci(image);
	return r < 0 ? r : unpack_layers(image, tree, docker);
}

int
image_unpack(struct layer_tree *tree, int file, struct why *why_r)
{
	struct image image = { .blobs = { .dir = tree->top, .room = &tree->room }, .why = why_r };
	struct stat st;
	int r = fstat(file, &st) < 0 ? -errno : 0;

	if (r < 0)
		return why_say(why_r, r, "", "%s", strerror(-r));
	if (S_ISDIR(st.st_mode))
		image.blobs.dir = file;
	else
		r = blobs_read(&image.blobs, file, why_r);
	if (r == 0)
		r = unpack(&image, tree);
	blobs_free(&image.blobs);
	json_decref(image.manifest);
	json_decref(image.config);
	return r;
}
