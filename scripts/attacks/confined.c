/* Plays the program of `ocr.tesseract`, which runs inside a page process, and tries what it must
 * not be able to do there: each try is printed as a word of the page, TRY-name-OK or TRY-name-no.
 * What it does succeed in is undone at once. The worker's number is not known in here: the numbers
 * just below the page process's own are tried. See reading.py. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int line = 0;

static void report(const char *name, int succeeded)
{
    line++;
    printf("5\t1\t1\t1\t%d\t1\t10\t%d\t200\t20\t95\tTRY-%s-%s\n", line, line * 30, name,
           succeeded ? "OK" : "no");
}

static int opens(const char *path, int flags)
{
    int file = open(path, flags, 0600);
    if (file < 0)
        return 0;
    close(file);
    return 1;
}

static void try_neighbours(void)
{
    int environ_read = 0, memory = 0, kill_allowed = 0, limit = 0, affinity = 0, priority = 0;
    pid_t parent = getppid();
    for (pid_t pid = parent - 40; pid < parent; pid++) {
        char path[64];
        if (pid <= 1)
            continue;
        snprintf(path, sizeof path, "/proc/%d/environ", pid);
        environ_read |= opens(path, O_RDONLY);
        snprintf(path, sizeof path, "/proc/%d/mem", pid);
        memory |= opens(path, O_RDWR);
        kill_allowed |= kill(pid, 0) == 0;
        struct rlimit now;
        if (prlimit(pid, RLIMIT_NOFILE, NULL, &now) == 0)
            limit |= prlimit(pid, RLIMIT_NOFILE, &now, NULL) == 0;
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        if (sched_getaffinity(pid, sizeof cpus, &cpus) == 0)
            affinity |= sched_setaffinity(pid, sizeof cpus, &cpus) == 0;
        priority |= setpriority(PRIO_PROCESS, pid, getpriority(PRIO_PROCESS, pid)) == 0;
    }
    report("environ", environ_read);
    report("memory", memory);
    report("kill", kill_allowed);
    report("prlimit", limit);
    report("affinity", affinity);
    report("priority", priority);
}

int main(int count, char **arguments)
{
    if (count > 1 && !strcmp(arguments[1], "--version")) {
        puts("tesseract 5.3.0");
        return 0;
    }
    if (count > 1 && !strcmp(arguments[1], "--list-langs")) {
        puts("List of available languages:\neng\ndeu\nfra\nosd");
        return 0;
    }
    /* All of the picture first: whoever writes it must not meet a closed pipe. */
    char buffer[65536];
    while (read(0, buffer, sizeof buffer) > 0) {
    }
    puts("level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext");
    try_neighbours();
    report("passwd", opens("/etc/passwd", O_RDONLY));
    report("write", opens("/tmp/docmill-attack-written", O_WRONLY | O_CREAT));
    int end = socket(AF_INET, SOCK_STREAM, 0);
    report("socket", end >= 0);
    int segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    report("shmget", segment >= 0);
    if (segment >= 0)
        shmctl(segment, IPC_RMID, NULL);
    report("memfd_secret", syscall(447, 0) >= 0);
    int flags = CLONE_NEWUSER | SIGCHLD;
    pid_t child = syscall(SYS_clone, flags, 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    report("newuser", child > 0);
    int session = fork();
    if (session == 0)
        _exit(setsid() > 0 ? 0 : 1);
    int status = 1;
    if (session > 0)
        waitpid(session, &status, 0);
    report("setsid", session > 0 && status == 0);
    return 0;
}
