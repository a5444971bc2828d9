/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/defaults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/base/settings/settings.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/log.h"
#include "fs/base/util/name.h"
#include "loader/pipeline/graph/edit.h"

struct taking {
	struct settings settings;
	struct beton_loader_options *o;
	struct defaults *out;
	char taken[512], left[512]; /* lists of settings for the message */
};

static bool is_set(const struct taking *t, enum setting s)
{
	return t->settings.of[s].is_set;
}

/* Returns whether to apply a setting, and adds it to the list of applied or of
   ignored settings. */
static bool wants(struct taking *t, enum setting s, bool is_free)
{
	if (!is_set(t, s))
		return false;
	if (is_free)
		settings_print(&t->settings, s, t->taken, sizeof(t->taken));
	else
		settings_print(&t->settings, s, t->left, sizeof(t->left));
	return is_free;
}

static int take_text(struct taking *t, enum setting s, const char **member,
		     char **owned)
{
	if (!wants(t, s, !*member))
		return 0;
	*owned = strdup(t->settings.of[s].text);
	if (!*owned)
		return -ENOMEM;
	*member = *owned;
	return 0;
}

static void take_number(struct taking *t, enum setting s, uint32_t *member)
{
	if (wants(t, s, !*member))
		*member = (uint32_t)t->settings.of[s].number;
}

/* Applies the size of a cache, unless the caller chose the kind of cache. */
static void take_size(struct taking *t, enum setting s, bool is_free,
		      uint64_t *member)
{
	if (wants(t, s, is_free && !*member))
		*member = t->settings.of[s].number;
}

static int take_cache(struct taking *t)
{
	bool is_free = !t->o->cache;
	int r = take_text(t, SETTING_CACHE, &t->o->cache, &t->out->cache);

	take_size(t, SETTING_CACHE_SIZE, is_free, &t->o->cache_size);
	take_size(t, SETTING_COLD_SIZE, is_free, &t->o->cold_size);
	return r;
}

/* Whether a sampling spec, not parsed yet, has the key. */
static bool spec_has(const char *spec, const char *key)
{
	size_t n = strlen(key);

	while (*spec) {
		if (!strncmp(spec, key, n) && spec[n] == '=')
			return true;
		spec += strcspn(spec, ",");
		spec += strspn(spec, ",");
	}
	return false;
}

static int add_to_spec(struct taking *t, enum setting s)
{
	const char *spec = t->out->spec ? t->out->spec : "";
	char *longer;

	if (text_print(&longer, "%s%s%s=%s", spec, *spec ? "," : "",
		       settings_key(s), t->settings.of[s].text))
		return -ENOMEM;
	free(t->out->spec);
	t->out->spec = longer;
	return 0;
}

/* Block and window belong to an order: apply them only with it. */
static int take_order(struct taking *t)
{
	static const enum setting keys[] = { SETTING_ORDER, SETTING_BLOCK,
					     SETTING_WINDOW };
	const char *spec = t->o->spec ? t->o->spec : "";
	bool is_free = !spec_has(spec, "order") && is_set(t, SETTING_ORDER);
	int r = 0;

	if (t->o->spec) {
		t->out->spec = strdup(spec);
		r = t->out->spec ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < 3 && !r; i++) {
		if (wants(t, keys[i],
			  is_free && !spec_has(spec, settings_key(keys[i]))))
			r = add_to_spec(t, keys[i]);
	}
	t->o->spec = t->out->spec;
	return r;
}

/* An operation that is already in the pipeline is the caller's choice. */
static void add_to_pipeline(struct taking *t, enum setting s, const char *name,
			    const char *operation, bool after_decode)
{
	const char *text = t->o->pipeline ? t->o->pipeline : "";
	char *new = NULL;
	bool is_free = is_set(t, s) && !edit_has(text, name) &&
		       !edit_with_first(text, operation, after_decode, &new);

	if (wants(t, s, is_free)) {
		free(t->out->pipeline);
		t->out->pipeline = new;
		t->o->pipeline = new;
	}
}

static void take_pipeline(struct taking *t)
{
	char cache[64];

	snprintf(cache, sizeof(cache), "cache(decoded, %s)",
		 t->settings.of[SETTING_CACHE_DECODED].text);
	add_to_pipeline(t, SETTING_DECODE, "decode", "decode(draft)", false);
	add_to_pipeline(t, SETTING_CACHE_DECODED, "cache", cache, true);
}

static int take_all(struct taking *t)
{
	int r;

	take_number(t, SETTING_WORKERS, &t->o->workers);
	take_number(t, SETTING_PREFETCH, &t->o->prefetch);
	r = take_text(t, SETTING_DELIVERY, &t->o->delivery, &t->out->delivery);
	r = r ? r : take_cache(t);
	r = r ? r : take_order(t);
	if (!r)
		take_pipeline(t);
	return r;
}

/* Logs the applied and the ignored settings, so that the origin of each option
   is visible. */
static void report(const struct taking *t, const char *path, struct log *log,
		   bool has_log)
{
	char line[1400];

	snprintf(line, sizeof(line), "BETON_SETTINGS, %.200s: %s%s%s%s", path,
		 *t->taken ? "using " : "using nothing", t->taken,
		 *t->left ? "; ignoring what the program sets: " : "", t->left);
	log_warning(log, "%s", line);
	if (!has_log)
		fprintf(stderr, "beton: %s\n", line);
}

int defaults_open(const struct beton_loader_options *options, struct log *log,
		  struct defaults *out)
{
	const char *path = secure_getenv("BETON_SETTINGS");
	struct defaults d = { .options = *options };
	struct taking t = { .o = &d.options, .out = &d };
	int r = 0;

	if (path && *path) {
		r = settings_read(path, log, &t.settings);
		r = r ? r : take_all(&t);
		if (!r)
			report(&t, path, log, options->log != NULL);
	}
	if (r)
		defaults_fini(&d);
	else
		*out = d;
	return r;
}

void defaults_fini(struct defaults *d)
{
	free(d->spec);
	free(d->pipeline);
	free(d->cache);
	free(d->delivery);
}
