// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cleanup.h"
#include "cmd.h"
#include "snapshot.h"
#include "view.h"

static int option_all;

static const struct poptOption options[] = {
    {"all", 0, POPT_ARG_NONE, &option_all, 0, "show every network namespace's state, not only this one's",
     NULL},
    RL_CMD_OPTION_JSON,
    POPT_TABLEEND,
};

/* A state with what its status needs to be shown. */
struct item {
	char path[RL_PATH_LEN];
	struct rl_state state;
	struct rl_snapshot snapshot;
	struct rl_error err;
};

static int out_of_memory(struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory while printing");
}

static int print_one(struct rl_error *err)
{
	RL_SNAPSHOT struct rl_snapshot snapshot = {};
	RL_STATE struct rl_state state = RL_STATE_INIT;
	struct rl_view_status status;
	int rc = rl_state_open(&state, err);

	if (!rc)
		rc = rl_snapshot_take(&state, RL_SNAPSHOT_DEVICES | RL_SNAPSHOT_LIMITS, &snapshot, err);
	if (rc)
		return rc;
	status = (struct rl_view_status){.cookie = state.cookie,
					 .path = state.path,
					 .snapshot = &snapshot,
					 .memory = rl_state_memory(&state)};
	rc = rl_cmd_json ? rl_view_json_print(rl_view_status_json(&status), stdout)
			 : rl_view_status_table(&status, stdout);
	return rc ? out_of_memory(err) : 0;
}

static void free_items(struct item **items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		rl_snapshot_free(&(*items)[i].snapshot);
		rl_state_close(&(*items)[i].state);
	}
	free(*items);
}

/* One that can't be read doesn't keep the others from being shown. False where it went away since it was
 * listed. */
static bool read_item(__u64 cookie, struct item *item, struct rl_view_status *status)
{
	int rc;

	*item = (struct item){.state = RL_STATE_INIT};
	snprintf(item->path, sizeof(item->path), RL_BASE "/%" PRIu64, (uint64_t)cookie);
	rc = rl_state_open_cookie(cookie, &item->state, &item->err);
	if (rc && item->err.kind == RL_ERROR_NOT_ATTACHED)
		return false;
	if (!rc)
		rc = rl_snapshot_take(&item->state, RL_SNAPSHOT_DEVICES | RL_SNAPSHOT_LIMITS, &item->snapshot,
				      &item->err);
	*status = (struct rl_view_status){
	    .cookie = cookie,
	    .path = item->path,
	    .snapshot = rc ? NULL : &item->snapshot,
	    .error = item->err.text,
	    .memory = rc ? 0 : rl_state_memory(&item->state),
	};
	return true;
}

static int print_statuses(const struct rl_view_status *statuses, size_t count)
{
	int rc = 0;

	if (rl_cmd_json)
		return rl_view_json_print(rl_view_status_all_json(statuses, count), stdout);
	if (!count)
		puts("no state of rl-agent in any network namespace");
	for (size_t i = 0; i < count && !rc; i++) {
		if (i)
			putchar('\n');
		rc = rl_view_status_table(&statuses[i], stdout);
	}
	return rc;
}

static int print_all(struct rl_error *err)
{
	RL_FREE struct rl_view_status *statuses = NULL;
	RL_FREE __u64 *cookies = NULL;
	struct item *items;
	size_t listed = 0, count = 0;
	int rc = rl_privilege_check("status", err);

	if (!rc)
		rc = rl_state_list(&cookies, &listed, err);
	if (rc)
		return rc;
	items = calloc(listed + 1, sizeof(*items));
	statuses = calloc(listed + 1, sizeof(*statuses));
	if (!items || !statuses) {
		free(items);
		return out_of_memory(err);
	}
	for (size_t i = 0; i < listed; i++)
		if (read_item(cookies[i], &items[count], &statuses[count]))
			count++;
	rc = print_statuses(statuses, count);
	free_items(&items, count);
	return rc ? out_of_memory(err) : 0;
}

static int run(int argc, const char **argv, struct rl_error *err)
{
	int count, rc = rl_cmd_parse(&rl_cmd_status, argc, argv, 0, 0, NULL, &count, err);

	if (rc)
		return rc;
	return option_all ? print_all(err) : print_one(err);
}

const struct rl_command rl_cmd_status = {
    .name = "status",
    .arguments = "[--all] [-j]",
    .summary = "Show what is attached",
    .help =
	"The devices of this network namespace, how and since when each is attached; which store the sources are in,\n"
	"how many fit, what happens when it is full, and how much memory is reserved. With --all, the devices of other\n"
	"network namespaces have the names that they were attached by.\n",
    .options = options,
    .run = run,
};
