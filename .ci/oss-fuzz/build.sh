#!/usr/bin/env bash
# Builds the fuzzers of all readers, with their seeds, into $OUT, as oss-fuzz and ClusterFuzzLite call it. Outside of their image,
# where the variables are not set, it builds with clang 19 and AddressSanitizer:
#   OUT=/tmp/fuzzers .ci/oss-fuzz/build.sh
set -euo pipefail
: "${OUT:?names the folder for the fuzzers}"
if [ -d "${SRC:-}/collet" ]; then source=$SRC/collet; else source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd); fi
work=${WORK:-$OUT/work}/collet
export CC=${CC:-clang-19} CXX=${CXX:-clang++-19}
# Boost's and protobuf's libraries are those of the system, which are built with libstdc++.
export CFLAGS=${CFLAGS:--O1 -g -fsanitize=address,fuzzer-no-link} CXXFLAGS=${CXXFLAGS:--O1 -g -fsanitize=address,fuzzer-no-link}
CXXFLAGS=${CXXFLAGS//-stdlib=libc++/}
engine=${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}

mkdir -p "$OUT/lib"
cmake -S "$source" -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=None -DCOLLET_WITH_LLVM=OFF -DCOLLET_LIBFUZZER=ON \
  "-DCOLLET_FUZZING_ENGINE=$engine" '-DCMAKE_BUILD_RPATH=$ORIGIN/lib'
cmake --build "$work" --target fuzzers ${COLLET_JOBS:+--parallel "$COLLET_JOBS"}

# The machine that runs them has the C and C++ libraries alone.
while read -r name longest seeds; do
  cp "$work/fuzz/$name" "$OUT/"
  ldd "$OUT/$name" | awk '/=> \// { print $3 }' | grep -Ev '/(libc|libm|libstdc\+\+|libgcc_s|libdl|libpthread|librt|libresolv)\.so' |
    xargs -r cp -Lt "$OUT/lib" || true
  printf '[libfuzzer]\nmax_len = %s\n' "$longest" >"$OUT/$name.options"
  # shellcheck disable=SC2086  # the seeds are several words
  python3 - "$OUT/${name}_seed_corpus.zip" $seeds <<'PYTHON'
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as archive:
    for place in sys.argv[2:]:
        files = [place] if os.path.isfile(place) else sorted(os.path.join(f, n) for f, _, names in os.walk(place) for n in names)
        for number, path in enumerate(files):
            archive.write(path, f"{number:03d}_{os.path.basename(path)}")
PYTHON
done <"$work/fuzz/fuzzers.txt"
ls "$OUT"
