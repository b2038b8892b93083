// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "footprint.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/rl_abi.h"
#include "bench/bench.skel.h"
#include "bench/gcra.skel.h"
#include "rl_reset.skel.h"
#include "rl_path.skel.h"
#include "rl_zero.skel.h"
#include "subject.h"

static int map_bytes(int fd, __u64 *out)
{
	static const char mark[] = "memlock:";
	char path[64], line[128];
	FILE *file;
	int rc = -EPROTO;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (rc && fgets(line, sizeof(line), file)) {
		if (strncmp(line, mark, strlen(mark)) != 0)
			continue;
		*out = strtoull(line + strlen(mark), NULL, 10);
		rc = 0;
	}
	fclose(file);
	return rc;
}

int footprint_memory(enum subject_id id, __u32 sources, __u64 *bytes, struct rl_error *err)
{
	const struct scenario scenario = {.drive = DRIVE_RUN, .family = 4, .sources = sources, .prefixes = 1};
	const struct bpf_object *object;
	struct subject subject;
	struct bpf_map *map;
	__u64 sum = 0, one = 0;
	int rc = subject_open(id, &scenario, -1, &subject, err);

	if (rc)
		return rc;
	object = subject.kind->object(&subject);
	bpf_object__for_each_map(map, object)
	{
		rc = rc ?: map_bytes(bpf_map__fd(map), &one);
		sum += one;
	}
	subject_close(&subject);
	if (rc)
		return rl_error_set(err, RL_ERROR_KERNEL, -rc, "the kernel doesn't tell what a map takes: %s",
				    strerror(-rc));
	*bytes = sum;
	return 0;
}

static int add_program(const struct bpf_program *program, struct footprint_program *out)
{
	struct bpf_prog_info info = {};
	__u32 size = sizeof(info);

	if (bpf_program__fd(program) < 0 || bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return 0;
	snprintf(out->name, sizeof(out->name), "%.15s", bpf_program__name(program));
	out->verified = info.verified_insns;
	out->xlated = info.xlated_prog_len;
	out->jited = info.jited_prog_len;
	return 1;
}

int footprint_programs(struct footprint_program programs[FOOTPRINT_PROGRAMS])
{
	struct rl_path *packet = rl_path__open_and_load();
	struct rl_reset *reset = rl_reset__open_and_load();
	struct rl_zero *zero = rl_zero__open_and_load();
	struct gcra *gcra = gcra__open();
	const struct bpf_object *const objects[] = {packet ? packet->obj : NULL, reset ? reset->obj : NULL,
						    zero ? zero->obj : NULL, gcra ? gcra->obj : NULL};
	struct bpf_program *program;
	int count = 0;

	if (gcra) {
		bpf_program__set_autoload(gcra->progs.gcra_dropping, false);
		gcra__load(gcra);
	}
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		if (!objects[i])
			continue;
		bpf_object__for_each_program(program, objects[i])
		{
			if (count < FOOTPRINT_PROGRAMS)
				count += add_program(program, &programs[count]);
		}
	}
	rl_path__destroy(packet);
	rl_reset__destroy(reset);
	rl_zero__destroy(zero);
	gcra__destroy(gcra);
	return count;
}

const char *footprint_compiler(char *buf, unsigned int size)
{
	struct bench *driver = bench__open();

	snprintf(buf, size, "%s", driver ? (const char *)driver->rodata->compiler : "unknown compiler");
	bench__destroy(driver);
	for (size_t end = strlen(buf); end && buf[end - 1] == ' '; end--)
		buf[end - 1] = '\0';
	return buf;
}
