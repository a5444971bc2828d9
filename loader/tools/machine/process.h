/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and their threads in /proc: their names, and their CPU time so far.
 * No state; any thread. `root` is the directory that has proc/: "" except in
 * tests.
 */
#ifndef LOADER_TOOLS_MACHINE_PROCESS_H
#define LOADER_TOOLS_MACHINE_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Opens a file such as /proc/stat below `root`. NULL: it cannot be opened. The
   caller closes it. */
FILE *process_open_file(const char *root, const char *path);

/* The CPU time of a process, or of one of its threads. */
struct process_stat {
	char name[32];
	pid_t parent;
	double cpu_s;	      /* user and system */
	uint64_t cpu_ticks;   /* the same in ticks of the clock */
	uint64_t start_ticks; /* start time, since the machine booted */
};

/* Calls `thread` for each thread of a process. */
void process_each_thread(const char *root, pid_t pid,
			 void (*thread)(void *arg, pid_t tid,
					const struct process_stat *stat),
			 void *arg);

/* Lists the process and its descendants, at most `max`; returns their
   number. */
size_t process_family(const char *root, pid_t pid, pid_t *out, size_t max);

/* The main thread's CPU time and the time that it waited for a CPU, in seconds;
   `cpu_s`: it is not known. */
double process_wanted_s(const char *root, pid_t pid, double cpu_s);

/* Copies a variable of its environment to `out`, which stays as it is if there
   is none, it is empty, or it may not be read. */
void process_environment(const char *root, pid_t pid, const char *name,
			 char *out, size_t size);

/* Returns the CPU time of a process so far, in seconds; 0: there is no such
   process. */
double process_cpu_s(const char *root, pid_t pid);

struct usage {
	/* User and system, all threads; measured, not counted in ticks. */
	uint64_t cpu_us;
	uint64_t peak_rss; /* bytes */
};

/* -ESRCH if there is no such process. */
int process_usage(pid_t pid, struct usage *out);

/* Returns the microseconds since this process began. */
uint64_t process_age_us(void);

#endif
