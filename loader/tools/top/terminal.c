/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/tools/top/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loader/tools/ui/output.h"

/* Control sequences of xterm and its relatives. ENTER switches to the alternate
   screen, stops wrapping lines and hides the cursor. LEAVE undoes it. */
#define ENTER "\033[?1049h\033[?7l\033[?25l"
#define LEAVE "\033[?25h\033[?7h\033[?1049l"
#define HOME "\033[H"
#define ERASE_LINE "\033[2K"
#define ERASE_BELOW "\033[J"

static void signal_set(sigset_t *out)
{
	static const int all[] = { SIGINT,  SIGTERM,  SIGHUP, SIGQUIT,
				   SIGTSTP, SIGWINCH, SIGCONT };

	sigemptyset(out);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigaddset(out, all[i]);
}

static void put_sequence(const char *text)
{
	fputs(text, stdout);
	fflush(stdout);
}

static void enter_screen(struct terminal *t)
{
	struct termios raw = t->before;

	if (t->has_keys) {
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	if (t->is_screen)
		put_sequence(ENTER);
	t->is_ours = true;
}

static void leave_screen(struct terminal *t)
{
	if (!t->is_ours)
		return;
	t->is_ours = false;
	if (t->is_screen)
		put_sequence(LEAVE);
	if (t->has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &t->before);
}

int terminal_open(struct terminal *t)
{
	sigset_t set;

	*t = (struct terminal){ .is_screen = isatty(STDOUT_FILENO) };
	t->has_keys = t->is_screen && !tcgetattr(STDIN_FILENO, &t->before);
	signal_set(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t->signals < 0)
		return -errno;
	enter_screen(t);
	return 0;
}

void terminal_close(struct terminal *t)
{
	leave_screen(t);
	if (t->signals >= 0)
		close(t->signals);
	t->signals = -1;
}

enum terminal_event terminal_event(struct terminal *t)
{
	struct signalfd_siginfo info;

	if (read(t->signals, &info, sizeof(info)) != sizeof(info))
		return TERMINAL_NONE;
	switch (info.ssi_signo) {
	case SIGTSTP:
		leave_screen(t);
		raise(SIGSTOP);
		enter_screen(t);
		return TERMINAL_CHANGED;
	case SIGCONT:
		/* The process continues after a SIGSTOP, which no process can
		   catch. */
		enter_screen(t);
		return TERMINAL_CHANGED;
	case SIGWINCH:
		return TERMINAL_CHANGED;
	default:
		return TERMINAL_END;
	}
}

void terminal_size(unsigned *width, unsigned *height)
{
	struct winsize w = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || !w.ws_col || !w.ws_row)
		w = (struct winsize){ .ws_col = 80, .ws_row = 24 };
	*width = w.ws_col;
	*height = w.ws_row;
}

/* Erases each line before writing it: erasing afterwards would delete the last
   character of a line as wide as the screen. The last line ends without '\n',
   which would scroll. */
static void show_screen(const char *text)
{
	fputs(HOME, stdout);
	while (*text) {
		size_t n = strcspn(text, "\n");
		bool is_last = !text[n] || !text[n + 1];

		printf("%s%.*s%s", is_last ? ERASE_BELOW : ERASE_LINE, (int)n,
		       text, is_last ? "" : "\r\n");
		text += text[n] ? n + 1 : n;
	}
}

int terminal_show(struct terminal *t, const char *text, struct log *log)
{
	if (t->is_screen)
		show_screen(text);
	else
		fputs(text, stdout);
	return output_flush(log);
}
