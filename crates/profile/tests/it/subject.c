/* Does a known number of calls for each command that it reads, and then answers with a line. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void db_work(int count, void (*function)(void));

static volatile int sum;
static int to_thread[2], from_thread[2];

void leaf(void) {
    for (int i = 0; i < 10; i++) sum += i;
}

void repeat(int count) {
    for (int i = 0; i < count; i++) leaf();
}

void descend(int depth) {
    leaf();
    if (depth > 1) descend(depth - 1);
}

void pong(int depth);

void ping(int depth) {
    leaf();
    if (depth > 1) pong(depth - 1);
}

void pong(int depth) {
    leaf();
    if (depth > 1) ping(depth - 1);
}

void work_of_child(int count) { repeat(count); }

void work_of_thread(int count) { repeat(count); }

static void *thread(void *unused) {
    int count;
    while (read(to_thread[0], &count, sizeof count) == sizeof count && count > 0) {
        work_of_thread(count);
        write(from_thread[1], &count, sizeof count);
    }
    return unused;
}

static void ask_thread(int count) {
    write(to_thread[1], &count, sizeof count);
    read(from_thread[0], &count, sizeof count);
}

/* Works until a command comes that is not `tick`, which it answers. */
static void spin(void) {
    struct pollfd input = {0, POLLIN, 0};
    char line[64] = "tick\n";
    while (!strcmp(line, "tick\n")) {
        puts("ticks");
        fflush(stdout);
        while (poll(&input, 1, 0) == 0) leaf();
        if (!fgets(line, sizeof line, stdin)) return;
    }
}

int main(void) {
    setvbuf(stdin, NULL, _IONBF, 0);
    pipe(to_thread);
    pipe(from_thread);
    pthread_t id;
    pthread_create(&id, NULL, thread, NULL);

    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        char command[32] = "";
        int count = 0;
        sscanf(line, "%31s %d", command, &count);

        if (!strcmp(command, "repeat")) repeat(count);
        if (!strcmp(command, "engine")) db_work(count, leaf);
        if (!strcmp(command, "descend")) descend(count);
        if (!strcmp(command, "ping")) ping(count);
        if (!strcmp(command, "thread")) ask_thread(count);
        if (!strcmp(command, "spin")) spin();
        if (!strcmp(command, "join")) {
            write(to_thread[1], &count, sizeof count);
            pthread_join(id, NULL);
        }
        if (!strcmp(command, "fork")) {
            pid_t child = fork();
            if (child == 0) {
                work_of_child(count);
                exit(0);
            }
            waitpid(child, NULL, 0);
        }
        if (!strcmp(command, "stay")) {
            int started[2];
            pipe(started);
            pid_t child = fork();
            if (child == 0) {
                work_of_child(count);
                write(started[1], "", 1);
                pause();
            }
            read(started[0], line, 1);
            printf("%d ", child);
        }
        if (!strcmp(command, "exec")) {
            pid_t child = fork();
            if (child == 0) {
                execl("/bin/true", "true", NULL);
                _exit(1);
            }
            waitpid(child, NULL, 0);
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
