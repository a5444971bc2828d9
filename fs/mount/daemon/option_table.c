/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/daemon/option_table.h"

#include <string.h>

#include "fs/base/order/order.h"
#include "fs/base/util/bytes.h"

#define AT(member) offsetof(struct options, member)

#define STORAGE(key, member, kind, name, text)                                 \
	{ #key, OPTS_STORAGE, .value = (name), .help = (text) },

static const struct opts_row rows[] = {
	{ "ro", OPTS_ALWAYS, .help = "Mount read-only (always on)" },
	{ "nosuid", OPTS_ALWAYS,
	  .help = "Ignore set-user-ID bits (always on)" },
	{ "nodev", OPTS_ALWAYS, .help = "Ignore device files (always on)" },
	{ "noexec", OPTS_MOUNT, AT(noexec),
	  .help = "Do not let files be executed" },
	{ "allow_other", OPTS_MOUNT, AT(allow_other),
	  .help = "Let other users read the mount, as the modes permit" },
	{ "allow_root", OPTS_MOUNT, AT(allow_root),
	  .help = "Let root read the mount" },
	{ "auto_unmount", OPTS_ALWAYS,
	  .help = "Unmount if the daemon is killed (always on)" },
	{ "uid", OPTS_NUMBER, AT(uid), TYPED_NUMBER_IN(0, UINT32_MAX - 1), "N",
	  .help = "Set the owner of all files (default: the dataset's)" },
	{ "gid", OPTS_NUMBER, AT(gid), TYPED_NUMBER_IN(0, UINT32_MAX - 1), "N",
	  .help = "Set the group of all files (default: the dataset's)" },
	{ "umask",
	  OPTS_NUMBER,
	  AT(umask),
	  { TYPED_OCTAL, .max = 0777 },
	  "OCTAL",
	  .help = "Set the modes to 0777 without these bits\n"
		  "(default: the modes of the dataset)" },
	{ "order",
	  OPTS_SPEC,
	  AT(spec.order),
	  { TYPED_WORD, .word_at = order_name_at },
	  "NAME",
	  .help = "Set the order of batches/default (default: random):\n"
		  "@" },
	{ "batch", OPTS_SPEC, AT(spec.batch), .value = "N",
	  .help = "Put N samples into each batch of batches/default\n"
		  "(default: 256)" },
	{ "seed", OPTS_SPEC, AT(spec.seed), .value = "N",
	  .help = "Seed the order of batches/default with N (default: 0)" },
	{ "drop_last", OPTS_SPEC, AT(spec.drop_last), .value = "0|1",
	  .help = "Drop a short last batch of batches/default\n"
		  "(default: 1)" },
	{ "block", OPTS_SPEC, AT(spec.block), .value = "N",
	  .help = "Keep blocks of N samples together in batches/default" },
	{ "window", OPTS_SPEC, AT(spec.window), .value = "N|NMiB",
	  .help = "Mix the samples of a window of N samples or MiB in\n"
		  "batches/default" },
	{ "subset", OPTS_SUBSET, AT(spec.subset), .value = "A-B|NAME[:FILE]",
	  .help = "Take only these samples for batches/default; with\n"
		  "FILE, define the subset NAME by the sample ids in\n"
		  "FILE" },
	{ "cache", OPTS_WORD, AT(cache), TYPED_WORD_OF("auto|os|process"),
	  "auto|os|process",
	  .help = "Cache the dataset in the kernel (os) or in the daemon\n"
		  "(process) (default: auto, by the sizes of file and\n"
		  "memory)" },
	{ "cache_size", OPTS_NUMBER, AT(cache_size), TYPED_SIZE_FROM(16 << 20),
	  "SIZE",
	  .help = "Limit the cache of the daemon to SIZE (default: half\n"
		  "of the available memory)" },
	{ "cold_size", OPTS_NUMBER, AT(cold_size), TYPED_SIZE_FROM(0), "SIZE",
	  .help = "Limit the compressed tier of that cache to SIZE\n"
		  "(default: used where it pays)" },
	{ "prefetch", OPTS_NUMBER, AT(prefetch), TYPED_NUMBER_IN(0, 8), "N",
	  .help = "Collate N batches before they are requested\n"
		  "(default: 2)" },
	{ "jobs", OPTS_NUMBER, AT(jobs), TYPED_NUMBER_IN(1, 1024), "N",
	  .help = "Prefetch batches with N threads (default: 2)" },
	{ "io_uring", OPTS_WORD, AT(io_uring), TYPED_WORD_OF("auto|on|off"),
	  "auto|on|off",
	  .help = "Take requests of the kernel through io_uring (default:\n"
		  "auto, if it is enabled in the kernel)" },
	{ "xattr", OPTS_FLAG, AT(xattr),
	  .help = "Add extended attributes: sizes of images, and offsets\n"
		  "in the dataset" },
	{ "names", OPTS_FLAG, AT(names),
	  .help = "Show class names below by/, as in\n"
		  "by/label/207-golden_retriever" },
	{ "verify", OPTS_FLAG, AT(verify),
	  .help = "Compare all bytes that are read with the checksums in\n"
		  "DATASET.sums, and fail damaged samples with EIO" },
	SOURCE_OPTIONS(STORAGE){
		"sandbox", OPTS_CHOICE, AT(sandbox),
		.help = "Refuse to mount if the kernel cannot confine the\n"
			"daemon" },
	{ "nosandbox", OPTS_CHOICE, AT(sandbox),
	  .help = "Do not confine the daemon (default: confine it as far\n"
		  "as the kernel can)" },
	{ "log", OPTS_TEXT, AT(log), .value = "FILE",
	  .help = "Write messages to FILE instead of syslog" },
	{ "settings", OPTS_TEXT, AT(settings), .value = "FILE",
	  .help = "Take options that are not given from FILE, which\n"
		  "beton doctor --apply writes" },
};

/* Options of mount(8) and fstab(5) that have no effect; '*' matches any end.
   mount(8) adds rw, and mount.fuse3 adds dev and suid, unless the user sets the
   opposite. A mount is ro,nosuid,nodev in any case. */
static const char *const words[] = {
	"rw",	       "dev",
	"suid",	       "exec",
	"defaults",    "default_permissions",
	"auto",	       "noauto",
	"nofail",      "_netdev",
	"user",	       "user=*",
	"users",       "nouser",
	"owner",       "group",
	"sync",	       "async",
	"dirsync",     "silent",
	"atime",       "noatime",
	"diratime",    "nodiratime",
	"relatime",    "norelatime",
	"strictatime", "nostrictatime",
	"lazytime",    "nolazytime",
	"comment=*",   "x-*",
	"X-*",
};

const struct opts_row *opts_row_at(size_t i)
{
	return i < ARRAY_LEN(rows) ? &rows[i] : NULL;
}

static bool is_word(const char *word, const char *text, size_t size)
{
	return strlen(word) == size && !memcmp(word, text, size);
}

const struct opts_row *opts_row_of(const char *key, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (is_word(rows[i].key, key, size))
			return &rows[i];
	}
	return NULL;
}

bool opts_is_ignored(const char *option, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t known = strcspn(words[i], "*");

		if ((words[i][known] ? size >= known : size == known) &&
		    !memcmp(words[i], option, known))
			return true;
	}
	return false;
}

void *opts_member(const struct options *opts, const struct opts_row *row)
{
	return (char *)opts + row->offset;
}

bool opts_is_text(const struct opts_row *row)
{
	return row->kind == OPTS_WORD || row->kind == OPTS_TEXT ||
	       row->kind == OPTS_SPEC || row->kind == OPTS_SUBSET;
}
