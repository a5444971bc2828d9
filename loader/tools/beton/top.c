/* SPDX-License-Identifier: Apache-2.0 */
/* beton top: a live view of a mount's work for each of its jobs. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/base/util/bytes.h"
#include "fs/base/util/cleanup.h"
#include "fs/base/util/clock.h"
#include "fs/source/url/url.h"
#include "loader/tools/beton/command.h"
#include "loader/tools/top/draw.h"
#include "loader/tools/top/fetch.h"
#include "loader/tools/top/json.h"
#include "loader/tools/top/terminal.h"

enum {
	KEYS_MAX = 64, /* read at a time */
	PAGE = 10,     /* rows to scroll by */
	FIRST_MS = 1000,
	PATIENCE_MS = 3000,
};

struct top_options {
	double interval;
	unsigned sort;
	bool once;
	bool json;
};

#define AT(member) .offset = offsetof(struct top_options, member)

static int parse_interval(const char *text, void *member)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0.1 && v <= 3600))
		return -EINVAL;
	*(double *)member = v;
	return 0;
}

static const struct option_row rows[] = {
	{ "interval", .kind = OPTION_PARSED, AT(interval),
	  .argument = "SECONDS", .parse = parse_interval,
	  .help = "Refresh every SECONDS, from 0.1 to 3600 (default: 2)" },
	{ "sort", .kind = OPTION_CHOICE, AT(sort),
	  .argument = "name|speed|wait|failed",
	  .help = "Sort jobs and their ranks by this (default: name)" },
	{ "once", .kind = OPTION_FLAG, AT(once),
	  .help = "Print one view after one interval, and exit" },
	{ "json", .kind = OPTION_FLAG, AT(json),
	  .help = "Print JSON; without --once, a line per interval" },
};

static const struct top_options defaults = { .interval = 2 };

/* A view that is refreshed until the user ends it. */
struct top {
	const struct invocation *call;
	const struct top_options *options;
	struct top_look look;
	struct top_reading *before, *now; /* owned */
	struct top_fetch *fetch;
	struct terminal terminal;
	int64_t asked_ns;
	int64_t next_ns;   /* when to read the mount again */
	size_t last;	   /* the last row that can be the first one shown */
	bool is_slow;	   /* the mount has not answered for a while */
	bool wants_to_end; /* the user pressed a key, or a signal came */
};

static int64_t interval_ns(const struct top_options *o)
{
	return (int64_t)(1e9 * o->interval);
}

static int log_mount_error(const struct invocation *call, int r,
			   const char *why)
{
	cleanup_free char *shown = url_visible(call->operands[0]);
	const char *mount = shown ? shown : "URL";

	if (r == -ENOENT || r == -ENOTDIR)
		log_error(call->log, "%s: not a mount of betonfs", mount);
	else
		log_error(call->log, "%s: .betonfs/stats.json: %s", mount, why);
	return r;
}

/* --- one picture --- */

/* Makes the text of a view. The caller frees *out. */
static int make_text(const struct top_reading *before,
		     const struct top_reading *now, const struct top_look *look,
		     const struct top_options *o, size_t *last, char **out)
{
	cleanup_free struct top_view *view = NULL;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	int r = file ? top_view_make(before, now, look->sort, &view) : -ENOMEM;

	if (!r && o->json)
		r = top_json(view, look->mount, o->once, file);
	else if (!r)
		*last = top_draw(view, look, file);
	if (file && fclose(file))
		r = -ENOMEM;
	if (r)
		free(text);
	else
		*out = text;
	return r;
}

static void wait_ns(int64_t ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static int top_once(const struct invocation *call)
{
	const struct top_options *o = call->options;
	const struct top_look look = { .mount = call->operands[0],
				       .sort = (enum top_sort)o->sort,
				       .shows_ended = true };
	cleanup_free struct top_reading *before = NULL, *now = NULL;
	cleanup_free char *text = NULL;
	char why[TOP_WHY_SIZE];
	size_t last;
	int r = top_reading_take(look.mount, &before, why);

	if (!r) {
		wait_ns(interval_ns(o));
		r = top_reading_take(look.mount, &now, why);
	}
	if (r)
		return log_mount_error(call, r, why);
	r = make_text(before, now, &look, o, &last, &text);
	if (r)
		log_error(call->log, "%s", strerror(-r));
	else
		fputs(text, stdout);
	return r;
}

/* --- a picture after another --- */

static int show_picture(struct top *t)
{
	cleanup_free char *text = NULL;
	int r;

	if (!t->now)
		return 0;
	if (t->terminal.is_screen)
		terminal_size(&t->look.width, &t->look.height);
	r = make_text(t->before, t->now, &t->look, t->options, &t->last, &text);
	if (!r)
		return terminal_show(&t->terminal, text, t->call->log);
	log_error(t->call->log, "%s", strerror(-r));
	return r;
}

static int take_answer(struct top *t)
{
	struct top_reading *reading;
	int r = top_fetch_answer(t->fetch, &reading);
	int64_t step = interval_ns(t->options);

	if (r) {
		terminal_close(&t->terminal);
		if (t->now &&
		    (r == -ENOENT || r == -ENOTCONN || r == -ECONNABORTED))
			log_error(t->call->log, "%s: the mount disappeared",
				  t->look.mount);
		else
			log_mount_error(t->call, r, t->fetch->why);
		return r;
	}
	/* The first rates appear after less than an interval. */
	if (!t->now)
		step = (int64_t)min_u64((uint64_t)step,
					FIRST_MS * UINT64_C(1000000));
	t->next_ns = t->asked_ns + step;
	t->is_slow = false;
	free(t->before);
	t->before = t->now;
	t->now = reading;
	/*
	 * Without a screen the pictures follow each other. Skip one without
	 * rates.
	 */
	return t->before || t->terminal.is_screen ? show_picture(t) : 0;
}

static void scroll_rows(struct top *t, int64_t by)
{
	int64_t first = (int64_t)t->look.first + by;

	if (first > (int64_t)t->last)
		first = (int64_t)t->last;
	t->look.first = first > 0 ? (size_t)first : 0;
}

static void take_key(struct top *t, char key)
{
	static const char sorts[] = "nswf"; /* of enum top_sort */
	const char *sort = memchr(sorts, key, strlen(sorts));

	if (sort) {
		t->look.sort = (enum top_sort)(sort - sorts);
		return;
	}
	switch (key) {
	case 'q':
		t->wants_to_end = true;
		break;
	case 'r':
		t->look.hides_ranks = !t->look.hides_ranks;
		break;
	case 'e':
		t->look.shows_ended = !t->look.shows_ended;
		break;
	case 'j':
		scroll_rows(t, 1);
		break;
	case 'k':
		scroll_rows(t, -1);
		break;
	case ' ':
		t->next_ns = 0;
		break;
	}
}

/*
 * Handles a cursor key or a similar one: "\033[A", "\033OA" on some terminals,
 * or "\033[5~". Returns how many bytes it has.
 */
static size_t take_sequence(struct top *t, const char *keys, size_t n)
{
	if (n < 3 || (keys[1] != '[' && keys[1] != 'O'))
		return 1;
	if (keys[2] == 'A' || keys[2] == 'B')
		scroll_rows(t, keys[2] == 'A' ? -1 : 1);
	if (keys[2] == '5' || keys[2] == '6')
		scroll_rows(t, keys[2] == '5' ? -PAGE : PAGE);
	return n > 3 && keys[3] == '~' ? 4 : 3;
}

static int take_keys(struct top *t)
{
	char keys[KEYS_MAX];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	/* The terminal is gone. */
	if (n <= 0)
		t->wants_to_end = true;
	for (ssize_t i = 0; i < n;) {
		if (keys[i] == '\033') {
			i += (ssize_t)take_sequence(t, keys + i,
						    (size_t)(n - i));
			continue;
		}
		take_key(t, keys[i]);
		i++;
	}
	return t->wants_to_end ? 0 : show_picture(t);
}

static int take_signal(struct top *t)
{
	enum terminal_event e = terminal_event(&t->terminal);

	t->wants_to_end = e == TERMINAL_END;
	return e == TERMINAL_CHANGED && t->terminal.is_screen ? show_picture(t)
							      : 0;
}

/* Requests a reading if one is due. Returns the latest time to look again. */
static int64_t request_reading(struct top *t)
{
	int64_t now = clock_ns();

	if (!t->fetch->is_busy && now >= t->next_ns) {
		t->asked_ns = now;
		top_fetch_ask(t->fetch);
	}
	if (!t->fetch->is_busy)
		return t->next_ns;
	return now + PATIENCE_MS * INT64_C(1000000);
}

static void tell_patience(struct top *t)
{
	if (t->is_slow || !t->fetch->is_busy)
		return;
	if (clock_ns() - t->asked_ns < PATIENCE_MS * INT64_C(1000000))
		return;
	t->is_slow = true;
	if (t->terminal.is_screen)
		terminal_show(&t->terminal,
			      "the mount does not answer; press q to quit\n",
			      t->call->log);
	else
		log_warning(t->call->log, "%s: the mount does not answer",
			    t->look.mount);
}

static int wait_for_event(struct top *t)
{
	struct pollfd fds[] = {
		{ t->terminal.signals, POLLIN, 0 },
		{ t->fetch->answers[0], POLLIN, 0 },
		{ t->terminal.has_keys ? STDIN_FILENO : -1, POLLIN, 0 },
	};
	int64_t ns = request_reading(t) - clock_ns();
	int r = 0;

	/* Rounded up to a millisecond. */
	if (poll(fds, ARRAY_LEN(fds), ns > 0 ? (int)(ns / 1000000) + 1 : 0) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		r = take_signal(t);
	if (!r && fds[1].revents)
		r = take_answer(t);
	if (!r && fds[2].revents)
		r = take_keys(t);
	if (!r)
		tell_patience(t);
	return r;
}

static int top_live(const struct invocation *call)
{
	const struct top_options *o = call->options;
	struct top t = {
		.call = call,
		.options = o,
		.terminal = { .signals = -1 },
		.look = { .mount = call->operands[0],
			  .interval_s = o->interval,
			  .sort = (enum top_sort)o->sort },
	};
	int r = top_fetch_open(t.look.mount, &t.fetch);

	r = r ? r : terminal_open(&t.terminal);
	if (r)
		log_error(call->log, "%s", strerror(-r));
	t.look.has_styles = t.terminal.is_screen;
	t.look.shows_ended = !t.terminal.is_screen;
	while (!r && !t.wants_to_end)
		r = wait_for_event(&t);
	terminal_close(&t.terminal);
	top_fetch_close(t.fetch);
	free(t.before);
	free(t.now);
	return r;
}

static int top(const struct invocation *call)
{
	const struct top_options *o = call->options;
	int r = o->once ? top_once(call) : top_live(call);

	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_top = {
	.name = "top",
	.operands = "MOUNT",
	.min_operands = 1,
	.max_operands = 1,
	.summary =
		"Watch the jobs that load from a mount, and what they wait for",
	.examples = "  beton top mnt\n"
		    "  beton top mnt --once --sort wait\n"
		    "  beton top mnt --json --interval 10 >> top.jsonl\n",
	.rows = rows,
	.num_rows = ARRAY_LEN(rows),
	.options_size = sizeof(struct top_options),
	.defaults = &defaults,
	.run = top,
};
