/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/ui/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fs/base/util/clock.h"

enum {
	SECOND_NS = 1000000000,
	INTERVAL_NS = SECOND_NS / 10,
	BAR_MAX = 40,
	TEXT_WIDTH = 56, /* columns of the text beside the bar, at most */
	LEFT_MAX = 100 * 3600 - 1,
};

void progress_init(struct progress *p, uint64_t total, const struct log *log)
{
	*p = (struct progress){
		.total = total,
		.started_ns = clock_ns(),
		.terminal = (!log || log->level >= BETON_LOG_INFO) &&
			    isatty(STDERR_FILENO),
	};
}

double progress_seconds(const struct progress *p)
{
	return (double)(clock_ns() - p->started_ns) / SECOND_NS;
}

static int bar_width(void)
{
	struct winsize w = { 0 };

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) < 0 || !w.ws_col)
		w.ws_col = 80;
	if (w.ws_col <= TEXT_WIDTH)
		return 0;
	return w.ws_col - TEXT_WIDTH < BAR_MAX ? w.ws_col - TEXT_WIDTH
					       : BAR_MAX;
}

static void draw_bar(const struct progress *p, uint64_t done)
{
	static const char full[BAR_MAX + 1] =
		"########################################";
	double part = p->total ? (double)done / (double)p->total : 0;
	double seconds = progress_seconds(p);
	double rate = (double)done / seconds;
	double left = rate > 0 ? (double)(p->total - done) / rate : 0;
	int width = bar_width(), filled = (int)(part * width);

	left = left < LEFT_MAX ? left : LEFT_MAX;
	fprintf(stderr,
		"\r[%.*s%*s] %3d%%  %llu/%llu  %.0f/s  %d:%02d:%02d left\033[K",
		filled, full, width - filled, "", (int)(part * 100),
		(unsigned long long)done, (unsigned long long)p->total, rate,
		(int)(left / 3600), (int)(left / 60) % 60, (int)left % 60);
	fflush(stderr);
}

void progress_show(struct progress *p, uint64_t done)
{
	int64_t now;

	if (!p->terminal)
		return;
	now = clock_ns();
	if (now - p->started_ns < SECOND_NS || now - p->drawn_ns < INTERVAL_NS)
		return;
	p->drawn_ns = now;
	p->visible = true;
	draw_bar(p, done);
}

void progress_hide(struct progress *p)
{
	if (!p->visible)
		return;
	p->visible = false;
	p->drawn_ns = 0;
	fputs("\r\033[K", stderr);
	fflush(stderr);
}
