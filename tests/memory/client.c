/* SPDX-License-Identifier: BSD-3-Clause
 * Loads the library as HDF5 loads a plugin and uses it, for tools that watch a process (LeakSanitizer, valgrind, seccomp):
 *   client LIBRARY golden FRAME...      each frame beside its .npy file: decoded, compared
 *   client LIBRARY chunks COUNT         so many small chunks through the filter callback; memory must not grow
 *   client LIBRARY peak CODEC DTYPE MIB [big|little [sorted [2|3]]]   peak memory of a chunk in the callback, as a multiple of its bytes
 *   client LIBRARY leak                 loses 100 bytes, to see that the watcher sees it
 *   client LIBRARY alone                loading changes nothing; encoding and decoding make no forbidden system call */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter/c_api.h"

typedef size_t (*filter_function)(unsigned, size_t, const unsigned*, size_t, size_t*, void**);
typedef struct {
  int version, id;
  unsigned encoder_present, decoder_present;
  const char* name;
  void *can_apply, *set_local;
  filter_function filter;
} filter_class;

static __typeof__(pyf_frame_info)* frame_info;
static __typeof__(pyf_decode)* decode;
static __typeof__(pyf_read_records)* read_records;
static __typeof__(pyf_decode_records)* decode_records;
static __typeof__(pyf_last_error)* last_error;
static __typeof__(pyf_configure)* configure;
static filter_function filter;
enum { DECODE = 0x0100 };

static void fail(const char* what) {
  fprintf(stderr, "%s; last error: %s\n", what, last_error != NULL ? last_error() : "");
  exit(1);
}

static void* symbol(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) fail(name);
  return found;
}

static void load(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail(dlerror());
  *(void**)&frame_info = symbol(library, "pyf_frame_info");
  *(void**)&decode = symbol(library, "pyf_decode");
  *(void**)&read_records = symbol(library, "pyf_read_records");
  *(void**)&decode_records = symbol(library, "pyf_decode_records");
  *(void**)&last_error = symbol(library, "pyf_last_error");
  *(void**)&configure = symbol(library, "pyf_configure");
  const filter_class* (*info)(void);
  *(void**)&info = symbol(library, "H5PLget_plugin_info");
  filter = info()->filter;
}

static unsigned char* read_file(const char* path, size_t* bytes) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail(path);
  *bytes = (size_t)ftell(file);
  rewind(file);
  unsigned char* const data = malloc(*bytes + 1);
  if (data == NULL || fread(data, 1, *bytes, file) != *bytes) fail(path);
  fclose(file);
  return data;
}

/* The size of a frame's values; those of records have a header of their own. */
static uint64_t size_of_values(const unsigned char* frame, size_t frame_bytes, const char* path) {
  pyf_records_info of_records = {.struct_bytes = sizeof of_records};
  pyf_info info = {.struct_bytes = sizeof info};
  const int records = frame[8] == 0;
  if ((records ? read_records(frame, frame_bytes, &of_records, NULL, 0) : frame_info(frame, frame_bytes, &info)) != 0)
    fail(path);
  return records ? of_records.value_bytes : info.value_bytes;
}

static int decode_any(const unsigned char* frame, size_t frame_bytes, void* values, size_t value_bytes) {
  return (frame[8] == 0 ? decode_records : decode)(frame, frame_bytes, values, value_bytes);
}

static void golden(const char* path) {
  size_t frame_bytes, file_bytes;
  unsigned char* const frame = read_file(path, &frame_bytes);
  char values_path[4096];
  snprintf(values_path, sizeof values_path, "%.*s.npy", (int)(strlen(path) - 4), path);
  unsigned char* const file = read_file(values_path, &file_bytes);
  const size_t at = 10 + (file[8] | (size_t)file[9] << 8);
  const uint64_t bytes = size_of_values(frame, frame_bytes, path);
  if (bytes != file_bytes - at) fail(path);
  unsigned char* const values = malloc(bytes + 1);
  if (decode_any(frame, frame_bytes, values, bytes) != 0) fail(path);
  if (memcmp(values, file + at, bytes) != 0) fail(path);
  if (frame_bytes > 80) { /* and damaged: errors must not leak either */
    frame[frame_bytes - 1] ^= 0x55;
    (void)decode_any(frame, frame_bytes, values, bytes);
    (void)decode_any(frame, frame_bytes - 8, values, bytes);
  }
  free(values);
  free(file);
  free(frame);
}

enum { CODECS = 6, PARTICLES = 5, TILE = 1, CHUNK = 2 };
static unsigned order = TILE, coordinates = 3; /* of particles */

/* The stored cd_values (docs/cd_values.md) of chunks with an absolute bound of 1/1024: of one dimension, but particles,
 * which the filter sorts by itself, of two or three coordinates. */
static size_t words_for(unsigned codec, unsigned dtype, int big_endian, unsigned count, unsigned words[14]) {
  static const unsigned lossless = 2;
  memset(words, 0, 14 * sizeof *words);
  words[0] = 0x31465950;
  words[1] = codec;
  words[2] = codec == lossless ? 0 : 1;
  words[4] = codec == lossless ? 0 : 0x3F500000; /* 2^-10 */
  words[6] = dtype | (big_endian ? 1u << 8 : 0);
  words[9] = 1;
  words[10] = count;
  if (codec != PARTICLES) return 12;
  words[5] = order;
  words[9] = 2;
  words[10] = count / coordinates;
  words[12] = coordinates;
  return 14;
}

/* The nearest number of values that a codec can have in a chunk. */
static size_t count_for(unsigned codec, size_t count) { return codec == PARTICLES ? count / coordinates * coordinates : count; }

static void fill(void* values, unsigned codec, unsigned dtype, int big_endian, size_t count, unsigned seed) {
  uint64_t random = seed + 1;
  for (size_t i = 0; i < count; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const double x = codec == PARTICLES ? (double)(random >> 40) / (1 << 18) : sin((double)(i + seed) / 50) + 1e-3 * (double)((i * 2654435761u >> 7) % 100);
    if (dtype == 1)
      ((float*)values)[i] = (float)x;
    else
      ((double*)values)[i] = x;
    if (big_endian && dtype == 1) ((uint32_t*)values)[i] = __builtin_bswap32(((uint32_t*)values)[i]);
    if (big_endian && dtype == 2) ((uint64_t*)values)[i] = __builtin_bswap64(((uint64_t*)values)[i]);
  }
}

/* A chunk there and back; returns the size of its frame. */
static size_t round_trip(unsigned codec, unsigned dtype, int big_endian, size_t about, unsigned seed) {
  unsigned words[14];
  const size_t count = count_for(codec, about);
  const size_t word_count = words_for(codec, dtype, big_endian, (unsigned)count, words), bytes = count * 4 * dtype;
  void* buffer = malloc(bytes);
  size_t room = bytes;
  if (buffer == NULL) fail("malloc");
  fill(buffer, codec, dtype, big_endian, count, seed);
  const size_t frame = filter(0, word_count, words, bytes, &room, &buffer);
  if (frame == 0 || frame > bytes + 72) fail("encode");
  if (filter(DECODE, word_count, words, frame, &room, &buffer) != bytes) fail("decode");
  free(buffer);
  return frame;
}

static long status_kib(const char* name) {
  char line[256];
  long kib = -1;
  FILE* const file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, name, strlen(name)) == 0) kib = strtol(line + strlen(name) + 1, NULL, 10);
  if (file != NULL) fclose(file);
  return kib;
}

static void chunks(unsigned long count) {
  const unsigned warm = 2000;
  long before = 0;
  for (unsigned long i = 0; i < count; ++i) {
    if (i == warm) before = status_kib("VmRSS:");
    round_trip(1 + i % CODECS, 1 + i / CODECS % 2, 0, 64 + i % 200, (unsigned)i);
  }
  const long grown = status_kib("VmRSS:") - before;
  printf("%lu chunks written and read, memory grew by %ld KiB\n", count, grown);
  if (grown > 512) fail("memory grows");
}

/* Peak of resident memory while a chunk is encoded, and while it is decoded, above what there was before it. */
static void peak(unsigned codec, unsigned dtype, size_t mib, int big_endian) {
  const size_t count = count_for(codec, (mib << 20) / (4 * dtype)), bytes = count * 4 * dtype;
  unsigned words[14];
  const size_t word_count = words_for(codec, dtype, big_endian, (unsigned)count, words);
  for (unsigned i = 0; i < 4; ++i) round_trip(codec, dtype, big_endian, 1 << 20, i); /* threads have their rooms */
  const long before = status_kib("VmRSS:");
  void* buffer = malloc(bytes);
  size_t room = bytes;
  if (buffer == NULL) fail("malloc");
  fill(buffer, codec, dtype, big_endian, count, 0);
  FILE* clear = fopen("/proc/self/clear_refs", "w");
  if (clear == NULL || fputs("5", clear) < 0 || fclose(clear) != 0) fail("clear_refs");
  const size_t frame = filter(0, word_count, words, bytes, &room, &buffer);
  const long encoding = status_kib("VmHWM:") - before;
  clear = fopen("/proc/self/clear_refs", "w");
  if (clear == NULL || fputs("5", clear) < 0 || fclose(clear) != 0) fail("clear_refs");
  if (frame == 0 || filter(DECODE, word_count, words, frame, &room, &buffer) != bytes) fail("round trip");
  const long decoding = status_kib("VmHWM:") - before;
  free(buffer);
  const double chunk_kib = (double)bytes / 1024;
  printf("%.3f %.3f %.3f\n", (double)encoding / chunk_kib, (double)decoding / chunk_kib, (double)frame / (double)bytes);
}

static int entries(const char* path) {
  int count = 0;
  DIR* const folder = opendir(path);
  while (folder != NULL && readdir(folder) != NULL) ++count;
  if (folder != NULL) closedir(folder);
  return count;
}

/* From here on, a call that opens, makes, removes, runs, connects or sends ends the process. */
static void forbid(void) {
  static const int forbidden[] = {
#ifdef SYS_open
      SYS_open, SYS_creat, SYS_fork, SYS_vfork, SYS_unlink, SYS_rename,
#endif
      SYS_openat, SYS_openat2, SYS_execve, SYS_execveat, SYS_socket, SYS_connect, SYS_bind, SYS_sendto, SYS_unlinkat,
      SYS_renameat2, SYS_ptrace, SYS_kill, SYS_mkdirat, SYS_memfd_create, SYS_write};
  enum { COUNT = sizeof forbidden / sizeof *forbidden };
  struct sock_filter code[COUNT + 3];
  code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < COUNT; ++i)
    code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)forbidden[i], COUNT - i, 0);
  code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  const struct sock_fprog program = {COUNT + 3, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    puts("no seccomp here");
    exit(77);
  }
}

static void alone(const char* path, int open_something) {
  const int files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  load(path);
  if (entries("/proc/self/fd") != files) fail("loading opens files");
  if (entries("/proc/self/task") != threads) fail("loading starts threads");
  if (configure("threads", "1") != 0) fail("threads");
  round_trip(1, 1, 0, 100, 0); /* now the loader was asked whose code called: it may look at that file once more */
  forbid();
  if (open_something) (void)!fopen("/proc/self/maps", "r");
  if (configure("threads", "2") != 0) fail("threads");
  for (unsigned codec = 1; codec <= CODECS; ++codec)
    for (unsigned dtype = 1; dtype <= 2; ++dtype) round_trip(codec, dtype, codec % 2, 300000, codec);
  syscall(SYS_exit_group, 0); /* not even stdout */
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const char* const what = arguments[2];
  if (strcmp(what, "alone") == 0) alone(arguments[1], count > 3);
  load(arguments[1]);
  if (strcmp(what, "golden") == 0) {
    for (int i = 3; i < count; ++i) golden(arguments[i]);
    for (unsigned codec = 1; codec <= CODECS; ++codec) round_trip(codec, 1, 0, 50000, codec);
  } else if (strcmp(what, "chunks") == 0 && count == 4) {
    if (configure("threads", "1") != 0) fail("threads");
    chunks(strtoul(arguments[3], NULL, 10));
  } else if (strcmp(what, "peak") == 0 && count >= 6) {
    if (count > 7) order = CHUNK;
    if (count > 8) coordinates = (unsigned)atoi(arguments[8]);
    peak((unsigned)atoi(arguments[3]), (unsigned)atoi(arguments[4]), (size_t)atoi(arguments[5]),
         count > 6 && strcmp(arguments[6], "big") == 0);
  } else if (strcmp(what, "leak") == 0) {
    void* volatile lost = malloc(100);
    lost = NULL;
    (void)lost;
  } else {
    return 2;
  }
  return 0;
}
