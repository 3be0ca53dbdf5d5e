#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks and measures the gpu backend on this machine, and packs a report. `run.sh --help` has the options.
# What is missing here (nvidia-smi, compute-sanitizer, jax, torch) is skipped with a message.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

driver=cuda output=$PWD/gpu-report python=${PYTHON:-python3} jobs=4 limit=1800 shard=0/1 profiles=() only=()
usage() {
  cat <<'END'
run.sh [options]
  --driver D       cuda (the machine's), emulator (a small set on the host's processor), or a library's path
  --output DIR     the report's folder (gpu-report); DIR.tar.gz is made of it
  --profile P      a profile of conform; may be repeated (memory core inference training quick contract)
  --shard I/N      a part of each profile's cases (0/1: all)
  --jobs N         worker processes of conform (4)
  --limit SECONDS  for each step (1800); what takes longer is ended, and the report says so
  --python FILE    a Python with jax or torch, for the comparison (python3)
  --only STEP      only this step; may be repeated: device conform libraries sanitizer bench graphs compare sass
Exit code 1: a step failed.
END
}
die() { echo "run.sh: $*" >&2; exit 2; }
value() { [ $# -ge 2 ] && [ -n "$2" ] || die "$1 needs a value"; printf '%s' "$2"; }
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --driver) driver=$(value "$@") || exit 2 ;;
    --output) output=$(value "$@") || exit 2 ;;
    --profile) profiles+=("$(value "$@")") || exit 2 ;;
    --shard) shard=$(value "$@") || exit 2 ;;
    --jobs) jobs=$(value "$@") || exit 2 ;;
    --limit) limit=$(value "$@") || exit 2 ;;
    --python) python=$(value "$@") || exit 2 ;;
    --only) only+=("$(value "$@")") || exit 2 ;;
    *) usage >&2; die "what is $1?" ;;
  esac
  shift 2
done
[[ $limit =~ ^[0-9]+$ && $jobs =~ ^[1-9][0-9]*$ && $shard =~ ^[0-9]+/[1-9][0-9]*$ ]] || die "a number is expected"

# The bundle's own libraries and backends. A build tree is taken where COLLET_TOOL names its tool.
tool=${COLLET_TOOL:-$here/bin/collet}
[ -x "$tool" ] || die "there is no tool $tool"
if [ -z "${COLLET_TOOL:-}" ]; then
  export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export COLLET_BACKEND_PATH=$here/lib/collet/backends
fi
cases=$here/cases compare_size=large
if [ "$driver" = emulator ]; then
  cases=$here/cases_small compare_size=small
  [ ${#profiles[@]} -gt 0 ] || { profiles=(quick); [ "$shard" != 0/1 ] || shard=0/200; }
fi
[ ${#profiles[@]} -gt 0 ] || profiles=(memory core inference training quick contract)
backend=(--backend gpu --option "driver=$driver" --no-fallback)
mkdir -p "$output" || exit 2
output=$(cd "$output" && pwd)
: >"$output/steps.jsonl"
: >"$output/report.txt"

quote() { local text=${1//\\/\\\\}; text=${text//\"/\\\"}; printf '"%s"' "${text//[[:cntrl:]]/ }"; }
say() { echo "$*" | tee -a "$output/report.txt"; }
# note STEP STATUS SECONDS MESSAGE FILE: one line of the report, for people and for machines.
failed=0
note() {
  [ "$2" != failed ] || failed=1
  say "$(printf '%-28s %-8s %6s s  %s' "$1" "$2" "$3" "$4")"
  printf '{"step": %s, "status": %s, "seconds": %s, "message": %s, "file": %s}\n' \
    "$(quote "$1")" "$(quote "$2")" "$3" "$(quote "$4")" "$(quote "${5:-}")" >>"$output/steps.jsonl"
}
skip() { note "$1" skipped 0 "$2"; }
# step NAME COMMAND...: runs it with the time limit; its output goes to NAME.txt, whose last line is the message.
step() {
  local name=$1 start=$SECONDS code file status message; shift
  file=${name// /_}.txt
  timeout -k 10 "$limit" "$@" >"$output/$file" 2>&1; code=$?
  message=$(grep -v '^[[:space:]]*$' "$output/$file" | tail -n 1)
  case $code in
    0) status=passed ;;
    77) status=skipped ;;  # of the scripts: there is nothing to compare with
    124 | 137) status=failed message="not done in $limit s" ;;
    *) status=failed message="exit code $code: $message" ;;
  esac
  note "$name" "$status" $((SECONDS - start)) "$message" "$file"
  [ $code = 0 ] || [ $code = 77 ]
}
wanted() { [ ${#only[@]} = 0 ] || [[ " ${only[*]} " == *" $1 "* ]]; }
python_has() { command -v "$python" >/dev/null && "$python" -c "import $1" 2>/dev/null; }

say "Collet's gpu backend, driver $driver, $(uname -sm), $(nproc) processors, $(date -u +%Y-%m-%dT%H:%M:%SZ)"
if wanted device; then
  if command -v nvidia-smi >/dev/null; then step nvidia-smi nvidia-smi; else skip nvidia-smi "there is no nvidia-smi"; fi
  if [ "$driver" = cuda ] && ! step "open the device" "$tool" info --backend gpu; then
    say "There is no device that can be opened: nothing else is run. Try --driver emulator."
    only=(none)
  fi
fi

if wanted conform; then
  for profile in "${profiles[@]}"; do
    step "conform $profile" "$tool" conform "${backend[@]}" --profile "$profile" --shard "$shard" --jobs "$jobs" \
      --json "$output/conform_$profile.json" --html "$output/conform_$profile.html"
  done
fi

# cuBLASLt, cuDNN and cuFFT in place of kernels wherever they have what a case needs; then the speed without them.
if wanted libraries; then
  step "conform libraries" "$tool" conform "${backend[@]}" --option libraries=always --filter 'dot/*' --filter 'convolution/*' \
    --filter 'fft/*' --shard "$shard" --jobs "$jobs" --json "$output/conform_libraries.json"
  step "bench without libraries" "$tool" bench "${backend[@]}" --option libraries=0 --cases "$cases" \
    --json "$output/bench_no_libraries.json"
fi

# The sanitizer's tools see kernels of the driver alone.
if wanted sanitizer; then
  for check in memcheck racecheck initcheck; do
    if ! command -v compute-sanitizer >/dev/null; then
      skip "sanitizer $check" "there is no compute-sanitizer"
    elif [ "$driver" != cuda ]; then
      skip "sanitizer $check" "only with --driver cuda"
    else
      for file in "$here"/cases_small/*.hlo; do
        name=$(basename "$file" .hlo)
        step "sanitizer $check $name" compute-sanitizer --tool "$check" --error-exitcode 9 --target-processes all \
          "$tool" run "$file" "${backend[@]}"
      done
      step "sanitizer $check conform" compute-sanitizer --tool "$check" --error-exitcode 9 --target-processes all \
        "$tool" conform "${backend[@]}" --profile quick --shard 0/40 --jobs 1 --timeout 300
    fi
  done
fi

if wanted bench; then
  step "bench" "$tool" bench "${backend[@]}" --cases "$cases" --json "$output/bench.json"
fi
if wanted graphs; then
  step "bench without graphs" "$tool" bench "${backend[@]}" --option graphs=0 --cases "$cases" --json "$output/bench_no_graphs.json"
fi

if wanted compare; then
  if [ ! -d "$here/python" ] || ! python_has jax; then
    skip "jax on this backend" "$python has no jax"
  else  # the plugin of the bundle beside jax's own platforms: a product and a gradient, compared with jax's cpu
    step "jax on this backend" env JAX_PLATFORMS=collet,cpu PYTHONPATH="$here/python" COLLET_PJRT_LIBRARY="$here/lib/libcollet_pjrt.so" \
      COLLET_BACKEND=gpu COLLET_OPTIONS="driver=$driver" COLLET_FALLBACK=none "$python" "$here/compare.py" --check
  fi
  for other in jax torch; do
    if ! python_has "$other"; then
      skip "compare with $other" "$python has no $other"
    elif [ ! -f "$output/bench.json" ]; then
      skip "compare with $other" "there are no figures of the step bench"
    else
      step "compare with $other" "$python" "$here/compare.py" --with "$other" --size "$compare_size" \
        --bench "$output/bench.json" --json "$output/compare_$other.json"
    fi
  done
fi

if wanted sass; then
  if command -v ptxas >/dev/null && command -v "$python" >/dev/null; then
    step "registers and spills" "$python" "$here/ptxas_report.py" --tool "$tool" --json "$output/ptxas.json" "$here"/cases/*.hlo
  else
    skip "registers and spills" "there is no ptxas, or no $python"
  fi
fi

{
  printf '{"driver": %s, "steps": [\n' "$(quote "$driver")"
  sed '$!s/$/,/' "$output/steps.jsonl"
  printf ']}\n'
} >"$output/report.json"
rm "$output/steps.jsonl"
{
  echo '<!doctype html><meta charset="utf-8"><title>Collet on a GPU</title><h1>Collet on a GPU</h1><pre>'
  sed 's/&/\&amp;/g; s/</\&lt;/g' "$output/report.txt"
  echo '</pre><ul>'
  for file in "$output"/*; do
    name=$(basename "$file")
    [ "$name" = index.html ] || echo "<li><a href=\"$name\">$name</a></li>"
  done
  echo '</ul>'
} >"$output/index.html"
tar -C "$(dirname "$output")" -czf "$output.tar.gz" "$(basename "$output")" || die "the report $output could not be packed"
echo "The report: $output.tar.gz"
exit $failed
