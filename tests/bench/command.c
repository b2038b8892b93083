// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/cleanup.h"

#define WORDS	  64
#define NO_SUCH	  127 /* as shells have it */
#define IN_NO_NET 126

struct pipes {
	int in[2], out[2], err[2];
};
#define PIPES __attribute__((cleanup(pipes_close)))
static const struct pipes no_pipes = {{-1, -1}, {-1, -1}, {-1, -1}};

static void end_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void pipes_close(struct pipes *pipes)
{
	for (int i = 0; i < 2; i++) {
		end_close(&pipes->in[i]);
		end_close(&pipes->out[i]);
		end_close(&pipes->err[i]);
	}
}

static _Noreturn void become(const struct pipes *pipes, int netns, const char *const *argv)
{
	if (setns(netns, CLONE_NEWNET) || dup2(pipes->in[0], 0) < 0 || dup2(pipes->out[1], 1) < 0 ||
	    dup2(pipes->err[1], 2) < 0)
		_exit(IN_NO_NET);
	execvp(argv[0], (char *const *)argv);
	_exit(errno == ENOENT ? NO_SUCH : IN_NO_NET);
}

/* All that comes, as much of it as there is room for. */
static void read_all(int fd, char *buf, size_t size)
{
	char rest[512];
	size_t len = 0;
	ssize_t n;

	do {
		n = len + 1 < size ? read(fd, buf + len, size - 1 - len) : read(fd, rest, sizeof(rest));
		if (n > 0 && len + 1 < size)
			len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	buf[len] = '\0';
}

static int explain(int status, const char *name, char *said, struct rl_error *err)
{
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SUCH)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOENT, "%s isn't installed", name);
	said[strcspn(said, "\n")] = '\0';
	return rl_error_set(err, RL_ERROR_KERNEL, EIO, "%s failed: %s", name,
			    said[0] ? said : "it says nothing");
}

int command_run(const struct command *command, const char *const *argv, struct rl_error *err)
{
	PIPES struct pipes pipes = no_pipes;
	char said[512], ignored[2];
	int status = 0;
	pid_t pid;

	if (pipe2(pipes.in, O_CLOEXEC) || pipe2(pipes.out, O_CLOEXEC) || pipe2(pipes.err, O_CLOEXEC))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "no pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't run %s: %s", argv[0],
				    strerror(errno));
	if (!pid)
		become(&pipes, command->netns, argv);
	end_close(&pipes.in[0]);
	end_close(&pipes.out[1]);
	end_close(&pipes.err[1]);
	if (command->input && write(pipes.in[1], command->input, strlen(command->input)) < 0)
		status = -1; /* it ended before it read that, and says why */
	end_close(&pipes.in[1]);
	if (command->output)
		read_all(pipes.out[0], command->output, command->size);
	else
		read_all(pipes.out[0], ignored, sizeof(ignored));
	read_all(pipes.err[0], said, sizeof(said));
	if (waitpid(pid, &status, 0) < 0)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "lost %s: %s", argv[0], strerror(errno));
	return explain(status, argv[0], said, err);
}

int command_line(int netns, struct rl_error *err, const char *format, ...)
{
	const char *argv[WORDS];
	char line[1024], *rest = line, *word;
	int count = 0;
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	while (count < WORDS - 1 && (word = strsep(&rest, " ")))
		argv[count++] = word;
	argv[count] = NULL;
	return command_run(&(struct command){.netns = netns}, argv, err);
}
