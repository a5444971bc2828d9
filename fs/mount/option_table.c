/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/mount/option_table.h"

#include <string.h>

#include "fs/order/order.h"
#include "fs/util/bytes.h"

#define AT(member) offsetof(struct options, member)

static const struct opts_row rows[] = {
	{ "ro", OPTS_ALWAYS, .help = "read only: always on" },
	{ "nosuid", OPTS_ALWAYS, .help = "always on" },
	{ "nodev", OPTS_ALWAYS, .help = "always on" },
	{ "noexec", OPTS_MOUNT, AT(noexec), .help = "no file can be executed" },
	{ "allow_other", OPTS_MOUNT, AT(allow_other),
	  .help = "other users may look, as the modes say" },
	{ "allow_root", OPTS_MOUNT, AT(allow_root), .help = "root may look" },
	{ "auto_unmount", OPTS_ALWAYS,
	  .help = "unmount if the daemon is killed: always on" },
	{ "uid", OPTS_NUMBER, AT(uid), TYPED_NUMBER_IN(0, UINT32_MAX - 1), "N",
	  "owner of all files (the dataset's)" },
	{ "gid", OPTS_NUMBER, AT(gid), TYPED_NUMBER_IN(0, UINT32_MAX - 1), "N",
	  "group of all files (the dataset's)" },
	{ "umask",
	  OPTS_NUMBER,
	  AT(umask),
	  { TYPED_OCTAL, .max = 0777 },
	  "OCTAL",
	  "modes are 0777 without it (mirror the dataset's)" },
	{ "order",
	  OPTS_SPEC,
	  AT(spec.order),
	  { TYPED_WORD, .word_at = order_name_at },
	  "NAME",
	  "batches/default: " },
	{ "batch", OPTS_SPEC, AT(spec.batch), .value = "N",
	  .help = "batches/default: samples per batch (256)" },
	{ "seed", OPTS_SPEC, AT(spec.seed), .value = "N",
	  .help = "batches/default: of the order (0)" },
	{ "drop_last", OPTS_SPEC, AT(spec.drop_last), .value = "0|1",
	  .help = "batches/default: leave out a short last batch (1)" },
	{ "block", OPTS_SPEC, AT(spec.block), .value = "N",
	  .help = "batches/default: samples that stay together" },
	{ "window", OPTS_SPEC, AT(spec.window), .value = "N|NMiB",
	  .help = "batches/default: samples that are mixed" },
	{ "subset", OPTS_SUBSET, AT(spec.subset), .value = "A-B|NAME[:FILE]",
	  .help = "batches/default: samples; or FILE's ids get a name" },
	{ "cache", OPTS_WORD, AT(cache), TYPED_WORD_OF("auto|os|process"),
	  "auto|os|process", "the kernel's page cache, or our own (by size)" },
	{ "cache_size", OPTS_NUMBER, AT(cache_size), TYPED_SIZE_FROM(16 << 20),
	  "SIZE", "of all memory of our own cache (half of what there is)" },
	{ "cold_size", OPTS_NUMBER, AT(cold_size), TYPED_SIZE_FROM(0), "SIZE",
	  "beside it, for evicted pages, compressed (where it pays)" },
	{ "ahead", OPTS_NUMBER, AT(ahead), TYPED_NUMBER_IN(0, 8), "N",
	  "batches assembled before their readers come (2)" },
	{ "threads", OPTS_NUMBER, AT(threads), TYPED_NUMBER_IN(1, 1024), "N",
	  "threads that assemble batches ahead (2)" },
	{ "xattr", OPTS_FLAG, AT(xattr),
	  .help = "extended attributes: sizes of images, places in the dataset" },
	{ "names", OPTS_FLAG, AT(names),
	  .help = "by/ with the names of classes: by/label/207-golden_retriever" },
	{ "sandbox", OPTS_CHOICE, AT(sandbox),
	  .help = "refuse to mount where the daemon cannot be confined" },
	{ "nosandbox", OPTS_CHOICE, AT(sandbox),
	  .help = "the daemon keeps its rights; else it gives up what it can" },
	{ "log", OPTS_TEXT, AT(log), .value = "FILE",
	  .help = "messages go there instead of to syslog" },
	{ "settings", OPTS_TEXT, AT(settings), .value = "FILE",
	  .help = "of what is not given: what beton doctor --apply wrote" },
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

const struct opts_row *opts_row_of(const char *key, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strlen(rows[i].key) == size &&
		    !memcmp(rows[i].key, key, size))
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
