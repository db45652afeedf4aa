/* Burns a known processor time: a chain of multiplications, whose length follows from a
 * calibration. Unlike a loop that looks at a clock, the chain costs the same work when the thread
 * loses its processor in the middle. */

#include <stdint.h>
#include <time.h>

#ifdef PLANTED_INSTRUCTIONS

/* Executes PLANTED_INSTRUCTIONS instructions, and a few to enter and leave. */
__attribute__((noinline)) static void planted_work(void)
{
    uint64_t left = PLANTED_INSTRUCTIONS / 2;

    if (left == 0)
        return;
#ifdef __x86_64__
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(left) : : "cc");
#elif defined(__aarch64__)
    __asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(left) : : "cc");
#else
#error "no loop of two instructions for this processor"
#endif
}

static void calibrate(void)
{
}

static void burn(double ns)
{
    if (ns > 0)
        planted_work();
}

#else

static double steps_per_ns;
static uint64_t chain = 1;

static void run_chain(uint64_t step_count)
{
    uint64_t value = chain;

    for (uint64_t step = 0; step < step_count; step++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        /* The compiler must not shorten the chain. */
        __asm__ volatile("" : "+r"(value));
    }
    chain = value;
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * now.tv_sec + now.tv_nsec;
}

/* The fastest of many short trials is one that nothing interrupted. */
static void calibrate(void)
{
    const uint64_t trial = 20000;

    for (int count = 0; count < 200; count++) {
        double begin = now_ns();

        run_chain(trial);

        double speed = trial / (now_ns() - begin);
        if (speed > steps_per_ns)
            steps_per_ns = speed;
    }
}

static void burn(double ns)
{
    run_chain((uint64_t) (ns * steps_per_ns));
}

#endif
