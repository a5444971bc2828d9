/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/data/engine/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/unit/t.h"

enum { PARTS = 50, RUNS = 200, CALLERS = 3 };

struct work {
	atomic_uint done[PARTS];
};

static void do_part(void *arg, unsigned part)
{
	struct work *w = arg;

	atomic_fetch_add(&w->done[part], 1);
}

static void check_runs(struct team *team)
{
	for (unsigned run = 0; run < RUNS; run++) {
		struct work w = { 0 };
		unsigned parts = run % (PARTS + 1);

		team_run(team, do_part, &w, parts);
		for (unsigned i = 0; i < PARTS; i++)
			CHECK(w.done[i] == (i < parts));
	}
}

static void each_part_is_done_once(void)
{
	struct team *team;

	check_runs(NULL);
	for (unsigned helpers = 0; helpers < 4; helpers++) {
		CHECK(!team_open(helpers, &team));
		check_runs(team);
		team_close(team);
	}
	team_close(NULL);
}

static void *run_caller(void *team)
{
	check_runs(team);
	return NULL;
}

static void several_threads_may_use_a_team(void)
{
	pthread_t callers[CALLERS];
	struct team *team;

	CHECK(!team_open(2, &team));
	for (unsigned i = 0; i < CALLERS; i++)
		CHECK(!pthread_create(&callers[i], NULL, run_caller, team));
	for (unsigned i = 0; i < CALLERS; i++)
		CHECK(!pthread_join(callers[i], NULL));
	team_close(team);
}

int main(void)
{
	each_part_is_done_once();
	several_threads_may_use_a_team();
	return 0;
}
