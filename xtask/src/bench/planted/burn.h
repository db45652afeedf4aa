/* Burns a known processor time: a chain of multiplications, whose length follows from a
 * calibration. Unlike a loop that looks at a clock, the chain costs the same work when the thread
 * loses its processor in the middle. */

#include <stdint.h>
#include <time.h>

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
