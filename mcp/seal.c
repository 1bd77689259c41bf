/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the key, which exists only here and in its file.
 * Reads:   sealed texts that clients send back. */
#include "mcp/seal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base64.h"
#include "base/handle.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"

/* The parts of a sealed text: SEALED_VERSION, host, id, time of expiry, whether the call has done
 * anything, process, seal. A dot separates the parts; the first one ends in a dot itself. */
#define SEALED_VERSION "s1."
#define SEALED_MAX 256			/* characters; texts that this service makes are shorter */
#define NOTHING_DONE 'n'
#define SOMETHING_DONE 's'

struct mcp_seal {
	unsigned char *key;		/* SEAL_KEY_BYTES, on pages of their own */
	char host[HANDLE_HOST_MAX + 1];
	char life[ID_CHARACTERS + 1];	/* names this process, in the texts that it seals */
};

/* Makes room for the key. Forked processes see zeros in it, and core dumps do not have it. */
static unsigned char *
new_key(void)
{
	void *key = mmap(NULL, SEAL_KEY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	xassert(key != MAP_FAILED && madvise(key, SEAL_KEY_BYTES, MADV_WIPEONFORK) == 0 &&
		madvise(key, SEAL_KEY_BYTES, MADV_DONTDUMP) == 0);
	return key;
}

struct mcp_seal *
mcp_seal_new_random(void)
{
	struct mcp_seal *seal = xcalloc(1, sizeof(*seal));

	seal->key = new_key();
	xassert(getrandom(seal->key, SEAL_KEY_BYTES, 0) == SEAL_KEY_BYTES);
	handle_own_host(seal->host);
	id_new(seal->life);
	return seal;
}

static int
seal_read_key(int fd, const char *path, struct mcp_seal *seal, struct why *why_r)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return why_say(why_r, -errno, "state_key_file", "%s: %s", path,
			       strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077))
		return why_say(why_r, -EPERM, "state_key_file",
			       "%s must be a file that only its owner can read", path);
	if (st.st_size != SEAL_KEY_BYTES ||
	    read(fd, seal->key, SEAL_KEY_BYTES) != SEAL_KEY_BYTES)
		return why_say(why_r, -EINVAL, "state_key_file",
			       "%s must have %d bytes", path, SEAL_KEY_BYTES);
	return 0;
}

/* Writes the key to its file. The file has a temporary name first, so that a crash leaves no
 * partial key. */
static int
seal_make_key(const char *path, const struct mcp_seal *seal, struct why *why_r)
{
	own_mem char *name = NULL;
	int fd, r = 0;

	name = xasprintf("%s.XXXXXX", path);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		r = -errno;
	if (r == 0 && (write(fd, seal->key, SEAL_KEY_BYTES) != SEAL_KEY_BYTES ||
		       fsync(fd) < 0 || rename(name, path) < 0)) {
		r = errno ? -errno : -EIO;
		unlink(name);
	}
	if (fd >= 0)
		close(fd);
	return r < 0 ? why_say(why_r, r, "state_key_file", "%s: %s", path, strerror(-r)) : 0;
}

int
mcp_seal_new(const char *path, struct mcp_seal **seal_r, struct why *why_r)
{
	struct mcp_seal *seal = mcp_seal_new_random();
	int r, fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0) {
		r = seal_read_key(fd, path, seal, why_r);
		close(fd);
	} else if (errno == ENOENT) {
		r = seal_make_key(path, seal, why_r);
	} else {
		r = why_say(why_r, -errno, "state_key_file", "%s: %s", path,
			    strerror(errno));
	}
	if (r < 0)
		mcp_seal_free(seal);
	else
		*seal_r = seal;
	return r;
}

void
mcp_seal_free(struct mcp_seal *seal)
{
	if (!seal)
		return;
	OPENSSL_cleanse(seal->key, SEAL_KEY_BYTES);
	munmap(seal->key, SEAL_KEY_BYTES);
	free(seal);
}

/* Adds a part to a digest, with its length before it, so that different lists of parts never have
 * the same digest. */
static void
seal_digest_part(EVP_MD_CTX *digest, const char *text)
{
	uint64_t len = strlen(text);

	xassert(EVP_DigestUpdate(digest, &len, sizeof(len)) == 1 &&
		EVP_DigestUpdate(digest, text, len) == 1);
}

void
seal_bind(const char *principal, const char *method, const json_t *params,
	  struct seal_binding *binding_r)
{
	static const char *const keys[] = { "name", "uri", "arguments" };
	EVP_MD_CTX *digest = xalloc_check(EVP_MD_CTX_new());

	xassert(EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1);
	seal_digest_part(digest, principal);
	seal_digest_part(digest, method);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const json_t *value = json_object_get(params, keys[i]);
		char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS |
						       JSON_COMPACT) : NULL;

		seal_digest_part(digest, text ? text : "");
		free(text);
	}
	xassert(EVP_DigestFinal_ex(digest, binding_r->digest, NULL) == 1);
	EVP_MD_CTX_free(digest);
}

/* Signs the first len bytes of a sealed text together with its binding. */
static void
seal_sign(const struct mcp_seal *seal, const char *text, size_t len,
	  const struct seal_binding *binding, unsigned char mac_r[SEAL_DIGEST_BYTES])
{
	unsigned char whole[SEALED_MAX + SEAL_DIGEST_BYTES];
	unsigned int mac_len = SEAL_DIGEST_BYTES;

	assert(len <= SEALED_MAX);
	memcpy(whole, text, len);
	memcpy(whole + len, binding->digest, SEAL_DIGEST_BYTES);
	xassert(HMAC(EVP_sha256(), seal->key, SEAL_KEY_BYTES, whole, len + SEAL_DIGEST_BYTES,
		     mac_r, &mac_len));
}

char *
mcp_seal_close(const struct mcp_seal *seal, const struct sealed *sealed,
	       const struct seal_binding *binding)
{
	unsigned char mac[SEAL_DIGEST_BYTES];
	char mac_text[BASE64_LEN(SEAL_DIGEST_BYTES) + 1], *text, said[SEALED_MAX];
	int n = snprintf(said, sizeof(said), SEALED_VERSION "%s.%s.%" PRId64 ".%c.%s",
			 seal->host, sealed->id, sealed->expires,
			 sealed->nothing_done ? NOTHING_DONE : SOMETHING_DONE, seal->life);

	seal_sign(seal, said, (size_t)n, binding, mac);
	base64url_encode(mac, sizeof(mac), mac_text);
	text = xasprintf("%s.%s", said, mac_text);
	return text;
}

static bool
mac_is(const char *text, const unsigned char mac[SEAL_DIGEST_BYTES])
{
	char right[BASE64_LEN(SEAL_DIGEST_BYTES) + 1];
	size_t len = base64url_encode(mac, SEAL_DIGEST_BYTES, right);

	return strlen(text) == len && CRYPTO_memcmp(text, right, len) == 0;
}

bool
mcp_seal_open(const struct mcp_seal *seal, const char *text, int64_t now,
	      const struct seal_binding *binding, struct sealed *sealed_r)
{
	unsigned char mac[SEAL_DIGEST_BYTES];
	const char *end = strrchr(text, '.');
	char life[ID_CHARACTERS + 1], done;

	if (!end || strlen(text) > SEALED_MAX)
		return false;
	seal_sign(seal, text, (size_t)(end - text), binding, mac);
	if (!mac_is(end + 1, mac))
		return false;
	/* The seal was right: only a process with the key can have written this. */
	if (sscanf(text, SEALED_VERSION "%*[^.].%26[a-z2-9].%" SCNd64 ".%c.%26[a-z2-9].",
		   sealed_r->id, &sealed_r->expires, &done, life) != 4)
		return false;
	sealed_r->nothing_done = done == NOTHING_DONE;
	sealed_r->is_ours = strcmp(life, seal->life) == 0;
	return now < sealed_r->expires;
}
