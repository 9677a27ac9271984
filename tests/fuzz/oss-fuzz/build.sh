#!/bin/bash -eu
# Builds every fuzz target and its seeds into $OUT. OSS-Fuzz sets SRC, OUT, WORK, CC, CXX, CFLAGS, CXXFLAGS (with the
# sanitizers) and LIB_FUZZING_ENGINE; the targets are those of tests/fuzz/CMakeLists.txt.
cd "$SRC/pyfilter"
build=${WORK:-/tmp}/pyfilter
cmake -S . -B "$build" -G Ninja -DPYF_FUZZ=ON -DPYF_CUDA=OFF -DPYF_LEVELS=baseline \
  -DPYF_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_CXX_FLAGS="$CXXFLAGS"
cmake --build "$build"
python3 tests/fuzz/seeds.py "$build/seeds" 4096
for target in "$build"/tests/fuzz/fuzz_*; do
  [ -f "$target" ] && [ -x "$target" ] || continue
  name=$(basename "$target")
  cp "$target" "$OUT/"
  (cd "$build/seeds/${name#fuzz_}" && find . -type f | sort | zip -q -@ "$OUT/${name}_seed_corpus.zip")
done
