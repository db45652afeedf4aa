#!/bin/bash
# Measures each repeat of a plan on a machine of its own. Task r of the array measures repeat r of all targets, one after the other:
#
#   sbatch --array=1-5 plans/slurm/repeats.sh PLAN RESULTS [SCRATCH]
#   assay compare RESULTS/*
#
# PLAN and RESULTS are on a file system that all nodes share. The plan has as many repeats as the array, or more. RESULTS is for one plan.
# SCRATCH is a directory on each node's own disk, for databases. A task that did not complete its repeat continues it when it is submitted
# again, alone or with the others: docs/slurm.md.

#SBATCH --job-name=assay
#SBATCH --nodes=1 --ntasks=1
# All of the node: other jobs would distort the measurement.
#SBATCH --exclusive --mem=0
# A task whose node fails begins again, and continues its repeat.
#SBATCH --requeue
# Not in RESULTS, which has only run directories.
#SBATCH --output=%x-%A_%a.log --open-mode=append

set -eu
usage="usage: sbatch --array=1-5 plans/slurm/repeats.sh PLAN RESULTS [SCRATCH]"
plan=${1:?$usage}
results=${2:?$usage}
repeat=r${SLURM_ARRAY_TASK_ID:?$usage}
data=${3:-/tmp}/assay-$SLURM_JOB_USER-$SLURMD_NODENAME
# The machine in the record. Nodes of one image may have the same id.
export ASSAY_HOST=$SLURMD_NODENAME

# `exec`, so that `scancel` and time limits signal assay, which then ends in order.
for run in "$results"/*-"$repeat"/run.json; do
    if [ -f "$run" ]; then
        exec assay run --resume "${run%/run.json}" --data "$data"
    fi
done
exec assay run "$plan" --only "**/$repeat" --set "name=$SLURM_JOB_NAME-$repeat" --results "$results" --data "$data"
