/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slow link, for tests on a kernel without netem: a command runs in a network
 * namespace, a server in another, and this program carries packets between
 * their TUN devices. TCP is the kernel's.
 */
#include "space.h"
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 64
#define PACKET_MAX (65536 + TUN_HEADER)
/* Packets of one device in a row, so that none waits for another's flood. */
#define IN_A_ROW 64
#define READY_S 20
#define END_S 3

struct options {
	struct wire_options wire;
	struct space_options space;
	int clients;
	int ready; /* port */
	const char *server, *json;
	char **command;
};

struct client {
	int space;
	int tun[2];	     /* the client's end, the server's */
	struct wire wire[2]; /* from that end to the other */
	pid_t pid;
	int status;
};

struct link {
	struct options options;
	struct client clients[CLIENTS_MAX];
	int server_space, epoll, timer, signals;
	pid_t server;
	uint64_t start, grain;
	int running; /* clients */
	sigset_t old_mask;
};

static const char usage[] =
	"Usage: link [OPTIONS] -- COMMAND [ARGUMENT]...\n"
	"Run COMMAND in a network namespace, behind a link that is slow.\n"
	"\n"
	"  --rtt=TIME         round trip, with unit us, ms or s (default: 50ms)\n"
	"  --rate=RATE        kbit, mbit or gbit a second (default: 400mbit)\n"
	"  --buffer=TIME      longest wait for the link; packets that would wait\n"
	"                     longer are dropped (default: 60ms)\n"
	"  --loss=PERCENT     lose so many packets at random (default: 0)\n"
	"  --outage=S[-S]/M   down for S seconds, each M seconds on average\n"
	"  --seed=N           of losses and outages (default: 1)\n"
	"  --mtu=N            largest packet (default: 9000)\n"
	"  --congestion=NAME  algorithm of TCP (default: the system's)\n"
	"  --clients=N        run COMMAND N times, each with a link of its own\n"
	"  --server=COMMAND   run this shell command at the other end, before\n"
	"  --ready=PORT       wait until the server accepts connections here\n"
	"  --json=FILE        write counts to FILE; - is the standard output\n"
	"\n"
	"The server's address is in LINK_SERVER, the client's number in "
	"LINK_CLIENT.\n"
	"The exit status is the highest of the commands', or 125.\n";

/* --- options --- */

struct unit {
	const char *name;
	double factor;
};

static const struct unit times[] = {
	{ "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 }
};
static const struct unit rates[] = {
	{ "kbit", 125 }, { "mbit", 125e3 }, { "gbit", 125e6 }, { NULL, 0 }
};
static const struct unit percents[] = { { "%", 0.01 },
					{ "", 0.01 },
					{ NULL, 0 } };
static const struct unit numbers[] = { { "", 1 }, { NULL, 0 } };

static void bad(const char *option, const char *text)
{
	fprintf(stderr, "link: --%s=%s is not valid: see --help\n", option,
		text);
	exit(125);
}

static double parse(const char *option, const char *text,
		    const struct unit *units)
{
	char *end;
	double value = strtod(text, &end);

	if (end != text && value >= 0)
		for (; units->name; units++)
			if (!strcmp(end, units->name))
				return value * units->factor;
	bad(option, text);
	return 0;
}

static void parse_outage(struct wire_options *o, const char *text)
{
	double low, high, every;

	if (sscanf(text, "%lf-%lf/%lf", &low, &high, &every) != 3) {
		if (sscanf(text, "%lf/%lf", &low, &every) != 2)
			bad("outage", text);
		high = low;
	}
	if (!(low > 0) || !(high >= low) || !(every > 0))
		bad("outage", text);
	o->outage_low = (uint64_t)(low * 1e9);
	o->outage_high = (uint64_t)(high * 1e9);
	o->outage_every = (uint64_t)(every * 1e9);
}

enum {
	RTT,
	RATE,
	BUFFER,
	LOSS,
	OUTAGE,
	SEED,
	MTU,
	CONGESTION,
	CLIENTS,
	SERVER,
	READY,
	JSON,
	HELP
};

static const struct option names[] = {
	{ "rtt", 1, NULL, RTT },	 { "rate", 1, NULL, RATE },
	{ "buffer", 1, NULL, BUFFER },	 { "loss", 1, NULL, LOSS },
	{ "outage", 1, NULL, OUTAGE },	 { "seed", 1, NULL, SEED },
	{ "mtu", 1, NULL, MTU },	 { "congestion", 1, NULL, CONGESTION },
	{ "clients", 1, NULL, CLIENTS }, { "server", 1, NULL, SERVER },
	{ "ready", 1, NULL, READY },	 { "json", 1, NULL, JSON },
	{ "help", 0, NULL, HELP },	 { NULL, 0, NULL, 0 }
};

static void set_option(struct options *o, int which, const char *text)
{
	const char *name = names[which].name;

	if (which == RTT)
		o->wire.delay = (uint64_t)(parse(name, text, times) / 2);
	else if (which == RATE)
		o->wire.rate = (uint64_t)parse(name, text, rates);
	else if (which == BUFFER)
		o->wire.buffer = (uint64_t)parse(name, text, times);
	else if (which == LOSS)
		o->wire.loss = parse(name, text, percents);
	else if (which == OUTAGE)
		parse_outage(&o->wire, text);
	else if (which == SEED)
		o->wire.seed = (uint64_t)parse(name, text, numbers);
	else if (which == MTU)
		o->space.mtu = (int)parse(name, text, numbers);
	else if (which == CLIENTS)
		o->clients = (int)parse(name, text, numbers);
	else if (which == READY)
		o->ready = (int)parse(name, text, numbers);
	else
		*(which == SERVER ? &o->server
		  : which == JSON ? &o->json
				  : &o->space.congestion) = text;
}

static void parse_options(struct options *o, int argc, char **argv)
{
	int which;

	*o = (struct options){ .clients = 1, .space.mtu = 9000 };
	o->wire = (struct wire_options){ .delay = 25000000, .seed = 1 };
	o->wire.rate = 50000000;
	o->wire.buffer = 60000000;
	while ((which = getopt_long(argc, argv, "+", names, NULL)) >= 0) {
		if (which == HELP || which == '?') {
			fputs(usage, which == HELP ? stdout : stderr);
			exit(which == HELP ? 0 : 125);
		}
		set_option(o, which, optarg);
	}
	o->command = argv + optind;
	if (!*o->command || !o->wire.rate || o->clients < 1 ||
	    o->clients > CLIENTS_MAX || o->space.mtu < 576 ||
	    o->space.mtu > 65535) {
		fputs(usage, stderr);
		exit(125);
	}
}

/* --- carrying packets --- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void take_in(struct client *c, int end)
{
	static char packet[PACKET_MAX];

	for (int i = 0; i < IN_A_ROW; i++) {
		ssize_t n = read(c->tun[end], packet, sizeof(packet));

		if (n <= TUN_HEADER)
			return;
		wire_put(&c->wire[end], packet, (size_t)n, TUN_HEADER,
			 now_ns());
	}
}

static void put_out(struct client *c, int end, uint64_t until)
{
	struct wire *w = &c->wire[!end];
	const void *packet;
	size_t size;

	while ((packet = wire_peek(w, until, &size))) {
		if (write(c->tun[end], packet, size) < 0 && errno == EAGAIN)
			return;
		wire_pop(w, TUN_HEADER);
	}
}

/* Returns when the next packet arrives. */
static uint64_t carry(struct link *l)
{
	uint64_t next = UINT64_MAX;

	for (int k = 0; k < l->options.clients; k++)
		for (int end = 0; end < 2; end++) {
			struct client *c = &l->clients[k];

			take_in(c, end);
			put_out(c, !end, now_ns());
			if (wire_next(&c->wire[end]) < next)
				next = wire_next(&c->wire[end]);
		}
	return next;
}

static void arm(int timer, uint64_t at)
{
	struct itimerspec t = { 0 };

	if (at != UINT64_MAX) {
		t.it_value.tv_sec = (time_t)(at / NS_PER_S);
		t.it_value.tv_nsec = (long)(at % NS_PER_S);
	}
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void watch(struct link *l, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e);
}

/* --- processes --- */

static pid_t spawn(struct link *l, int space, int k)
{
	pid_t parent = getpid(), pid = fork();
	char number[16];

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || setns(space, CLONE_NEWNET))
		_exit(125);
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
	setpriority(PRIO_PROCESS, 0, 0);
	sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
	snprintf(number, sizeof(number), "%d", k);
	setenv("LINK_CLIENT", number, 1);
	setenv("LINK_SERVER", SERVER_ADDRESS, 1);
	return 0;
}

static void run_server(struct link *l)
{
	setpgid(0, 0);
	execl("/bin/sh", "sh", "-c", l->options.server, NULL);
	_exit(125);
}

static void run_command(struct link *l)
{
	execvp(l->options.command[0], l->options.command);
	fprintf(stderr, "link: cannot run %s: %s\n", l->options.command[0],
		strerror(errno));
	_exit(125);
}

static void wait_for_port(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	uint64_t end = now_ns() + READY_S * NS_PER_S;

	to.sin_port = htons((uint16_t)port);
	inet_pton(AF_INET, SERVER_ADDRESS, &to.sin_addr);
	while (now_ns() < end) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (!connect(fd, (void *)&to, sizeof(to)))
			_exit(0);
		close(fd);
		usleep(20000);
	}
	fprintf(stderr,
		"link: the server did not listen on port %d within "
		"%d s\n",
		port, READY_S);
	_exit(125);
}

static int start_server(struct link *l)
{
	int status = 0;
	pid_t pid;

	if (!l->options.server)
		return 0;
	l->server = spawn(l, l->server_space, 0);
	if (!l->server)
		run_server(l);
	if (!l->options.ready)
		return 0;
	pid = spawn(l, l->server_space, 0);
	if (!pid)
		wait_for_port(l->options.ready);
	waitpid(pid, &status, 0);
	return status ? -ETIMEDOUT : 0;
}

static void end_server(struct link *l)
{
	uint64_t end = now_ns() + END_S * NS_PER_S;

	if (l->server <= 0)
		return;
	kill(-l->server, SIGTERM);
	while (waitpid(l->server, NULL, WNOHANG) == 0 && now_ns() < end)
		usleep(5000);
	kill(-l->server, SIGKILL);
}

static void reap(struct link *l)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == l->server)
			l->server = 0;
		for (int k = 0; k < l->options.clients; k++)
			if (l->clients[k].pid == pid) {
				l->clients[k].pid = 0;
				l->clients[k].status = status;
				l->running--;
			}
	}
}

static void pass_signal(struct link *l)
{
	struct signalfd_siginfo info;

	if (read(l->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD) {
		reap(l);
		return;
	}
	for (int k = 0; k < l->options.clients; k++)
		if (l->clients[k].pid > 0)
			kill(l->clients[k].pid, (int)info.ssi_signo);
}

static void run(struct link *l)
{
	struct epoll_event events[16];

	while (l->running > 0) {
		int n;

		arm(l->timer, carry(l));
		n = epoll_wait(l->epoll, events, 16, -1);
		for (int i = 0; i < n; i++)
			if (events[i].data.fd == l->signals)
				pass_signal(l);
		/* Packets that follow shortly share this turn. */
		usleep((useconds_t)(l->grain / 1000));
	}
}

/* --- the report --- */

static void print_wire(FILE *f, const char *name, const struct wire *w)
{
	const struct wire_counts *c = &w->counts;

	fprintf(f,
		"\"%s\": {\"bytes\": %llu, \"packets\": %llu, \"full\": %llu, "
		"\"lost\": %llu, \"down\": %llu, \"bytes_per_100ms\": [",
		name, (unsigned long long)c->bytes,
		(unsigned long long)c->packets, (unsigned long long)c->full,
		(unsigned long long)c->lost, (unsigned long long)c->down);
	for (size_t i = 0; i < w->n_spans; i++)
		fprintf(f, "%s%llu", i ? ", " : "",
			(unsigned long long)w->spans[i]);
	fputs("]}", f);
}

static double cpu_seconds(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

static void print_json(FILE *f, const struct link *l, double seconds)
{
	fprintf(f, "{\"seconds\": %.6f, \"rtt\": %.6f, \"rate\": %llu, ",
		seconds, (double)l->options.wire.delay * 2e-9,
		(unsigned long long)l->options.wire.rate);
	fprintf(f, "\"cpu_seconds\": %.3f, \"clients\": [", cpu_seconds());
	for (int k = 0; k < l->options.clients; k++) {
		fputs(k ? ", {" : "{", f);
		print_wire(f, "up", &l->clients[k].wire[0]);
		fputs(", ", f);
		print_wire(f, "down", &l->clients[k].wire[1]);
		fputs("}", f);
	}
	fputs("]}\n", f);
}

static int report(const struct link *l)
{
	double seconds = (double)(now_ns() - l->start) * 1e-9;
	uint64_t up = 0, down = 0;
	FILE *f = stdout;

	for (int k = 0; k < l->options.clients; k++) {
		up += l->clients[k].wire[0].counts.bytes;
		down += l->clients[k].wire[1].counts.bytes;
	}
	if (!l->options.json) {
		fprintf(stderr,
			"link: %.3f s, %llu bytes to the server, %llu from it\n",
			seconds, (unsigned long long)up,
			(unsigned long long)down);
		return 0;
	}
	if (strcmp(l->options.json, "-"))
		f = fopen(l->options.json, "w");
	if (f)
		print_json(f, l, seconds);
	if (!f || (f != stdout && fclose(f))) {
		fprintf(stderr, "link: cannot write %s: %s\n", l->options.json,
			strerror(errno));
		return 125;
	}
	return 0;
}

static int exit_code(const struct link *l)
{
	int highest = 0;

	for (int k = 0; k < l->options.clients; k++) {
		int s = l->clients[k].status;
		int code = WIFEXITED(s) ? WEXITSTATUS(s) : 128 + WTERMSIG(s);

		highest = code > highest ? code : highest;
	}
	return highest;
}

/* --- start --- */

static int make_spaces(struct link *l)
{
	struct options *o = &l->options;
	int r = space_permit();

	if (r)
		return r;
	l->server_space = r = space_enter(&o->space);
	if (r >= 0)
		r = space_add_server();
	for (int k = 0; k < o->clients && r >= 0; k++)
		l->clients[k].tun[1] = r = space_tun(&o->space, k, 1);
	for (int k = 0; k < o->clients && r >= 0; k++) {
		l->clients[k].space = r = space_enter(&o->space);
		if (r >= 0)
			l->clients[k].tun[0] = r = space_tun(&o->space, k, 0);
	}
	return r < 0 ? r : 0;
}

static int open_wires(struct link *l)
{
	for (int k = 0; k < l->options.clients; k++)
		for (int end = 0; end < 2; end++) {
			uint64_t number = (uint64_t)(2 * k + end);
			int r = wire_open(&l->clients[k].wire[end],
					  &l->options.wire, number, (uint64_t)k,
					  l->start);

			if (r) {
				fprintf(stderr, "link: %s\n", strerror(-r));
				return r;
			}
			watch(l, l->clients[k].tun[end]);
		}
	return 0;
}

/* Threads that compute must not delay packets. */
static void be_punctual(void)
{
	struct sched_param p = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_RR, &p))
		setpriority(PRIO_PROCESS, 0, -20);
	prctl(PR_SET_TIMERSLACK, 1);
}

static void block_signals(struct link *l)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &l->old_mask);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	watch(l, l->signals);
}

static void choose_grain(struct link *l)
{
	l->grain = l->options.wire.delay / 10;
	if (l->grain < 25000)
		l->grain = 25000;
	if (l->grain > 1000000)
		l->grain = 1000000;
}

static void start_clients(struct link *l)
{
	for (int k = 0; k < l->options.clients; k++) {
		l->clients[k].pid = spawn(l, l->clients[k].space, k);
		if (!l->clients[k].pid)
			run_command(l);
		l->running++;
	}
}

int main(int argc, char **argv)
{
	static struct link link;
	struct link *l = &link;
	int r;

	parse_options(&l->options, argc, argv);
	if (make_spaces(l))
		return 125;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	watch(l, l->timer);
	block_signals(l);
	choose_grain(l);
	r = start_server(l) ? 125 : 0;
	l->start = now_ns();
	r = r || open_wires(l) ? 125 : 0;
	if (!r) {
		be_punctual();
		start_clients(l);
		run(l);
		r = report(l);
	}
	end_server(l);
	for (int k = 0; k < l->options.clients; k++)
		for (int end = 0; end < 2; end++)
			wire_close(&l->clients[k].wire[end]);
	return r ? r : exit_code(l);
}
