#!/bin/bash
# usage: devrun.sh LIMIT "fam1,fam2" "fam3" ...
export XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONPATH=src OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2 HEADCOUNT_CACHE=/tmp/hc XDG_CACHE_HOME=/tmp/xdg TF_CPP_MIN_LOG_LEVEL=3
limit=$1; shift
mkdir -p /tmp/cal
i=0
for f in "$@"; do timeout $limit python -m headcount calibrate --families $f --out /tmp/cal > /tmp/cal_$i.log 2>&1 & i=$((i+1)); done
wait
for d in /tmp/cal/*/; do n=$(basename $d); mkdir -p $OUT/cal/$n; cp $d/result.json $d/results.sqlite $OUT/cal/$n/ 2>/dev/null; done
tail -n 3 /tmp/cal_*.log | cut -c1-300; ls /tmp/cal/*/result.json | wc -l
