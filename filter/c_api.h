/* SPDX-License-Identifier: BSD-3-Clause
 * The C ABI that Python (ctypes) and other programs call. C99. Every function returns a pyf_code (0 is success) unless
 * it says otherwise; pyf_last_error() then has the text. Nothing here prints, exits or throws. */
#ifndef PYFILTER_C_API_H
#define PYFILTER_C_API_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PYF_API __attribute__((visibility("default")))
#else
#define PYF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PYF_ABI_VERSION 1

enum pyf_code {
  PYF_OK = 0,
  PYF_INVALID_ARGUMENT = 10,
  PYF_UNSUPPORTED = 20,
  PYF_CORRUPT = 30,
  PYF_TRUNCATED = 31,
  PYF_TOO_NEW = 32,
  PYF_NO_SPACE = 40,
  PYF_NO_MEMORY = 50,
  PYF_DEVICE = 60,
  PYF_INTERNAL = 90
};

/* What to encode and how. Unused fields are zero. */
typedef struct pyf_request {
  uint32_t struct_bytes; /* sizeof(pyf_request) of the caller */
  uint8_t codec;         /* registry.json: codecs[].id */
  uint8_t dtype;         /* registry.json: dtypes.*.code */
  uint8_t bound_mode;    /* registry.json: bounds.* */
  uint8_t has_fill;      /* 0 or 1 */
  double bound;
  uint64_t fill;             /* bit pattern of the fill value in host order, zero-extended */
  uint8_t parameters[8];     /* codec parameters, by their registry "byte" */
  uint8_t source_big_endian; /* 0 or 1: only recorded in the frame */
  uint8_t reserved[3];
  int32_t rank; /* 0..32 */
  uint64_t dims[32];
} pyf_request;

/* What a frame says of itself. */
typedef struct pyf_info {
  uint32_t struct_bytes;
  uint8_t format_version;
  uint8_t codec;
  uint8_t dtype;
  uint8_t stored_raw;
  uint8_t source_big_endian;
  uint8_t has_sentinel;
  uint8_t pointwise; /* 1: bound is relative to each value, step one of log2 |x| */
  uint8_t reserved;
  int32_t rank;
  double bound;
  double step;
  uint64_t sentinel;
  uint8_t parameters[8];
  uint64_t header_bytes;
  uint64_t frame_bytes;
  uint64_t value_count;
  uint64_t value_bytes;
  uint64_t dims[32];
  double carried_bound; /* where above bound: of values that were decoded before they were encoded here; else 0 */
} pyf_info;

PYF_API uint32_t pyf_abi_version(void);
PYF_API const char* pyf_version(void);    /* "0.1.0" */
PYF_API const char* pyf_last_error(void); /* of this thread; never NULL */

PYF_API int pyf_check_request(const pyf_request* request);
PYF_API size_t pyf_max_frame_bytes(const pyf_request* request); /* 0: request invalid or too large */
PYF_API int pyf_encode(const pyf_request* request, const void* values, size_t value_bytes, void* frame,
                       size_t frame_capacity, size_t* frame_bytes);
/* Encodes values of which some come from `old`, a frame of the same dtype and shape, decoded: with a bound that follows
 * the range (relative, psnr) those keep the error that they have, or one within the new bound. `frame` has room for
 * pyf_max_frame_bytes(). */
PYF_API int pyf_encode_updated(const pyf_request* request, const void* values, size_t value_bytes, const void* old,
                               size_t old_bytes, void* frame, size_t frame_capacity, size_t* frame_bytes);
PYF_API int pyf_frame_info(const void* frame, size_t available, pyf_info* info);
PYF_API int pyf_decode(const void* frame, size_t frame_bytes, void* values, size_t value_bytes);
PYF_API int pyf_decode_range(const void* frame, size_t frame_bytes, uint64_t start, uint64_t stop, void* values,
                             size_t value_bytes);
/* low and high of the finite values other than the fill; *found = 0 when there is none. Of an integer that no double
 * is, the next double inwards */
PYF_API int pyf_value_range(const pyf_request* request, const void* values, size_t value_bytes, double* low,
                            double* high, int* found);

/* For codec particles: the indices of the particles (uint32_t, one for each) in the order that the request asks for. */
PYF_API int pyf_particle_order(const pyf_request* request, const void* values, size_t value_bytes, uint32_t* particles);
/* Chunks as a file has them. pyf_list_chunk is for HDF5's H5Dchunk_iter, with a pyf_chunk_list as its op_data; it
 * returns 1, which ends the walk, where the list is full. */
typedef struct pyf_chunk_list {
  uint64_t room; /* of the arrays, in chunks */
  uint64_t count;
  uint64_t rank;
  uint64_t* origins; /* rank numbers each: a chunk's first coordinates */
  uint64_t* offsets; /* in the file */
  uint64_t* sizes;   /* bytes */
  uint32_t* masks;   /* of filters that it has not gone through */
} pyf_chunk_list;
PYF_API int pyf_list_chunk(const uint64_t* origin, unsigned mask, uint64_t offset, uint64_t size, void* list);

typedef struct pyf_range { /* bytes of a file, and where they go */
  uint64_t offset;
  uint64_t bytes;
  void* to;
  uint64_t done; /* set by the call; fewer than bytes where the file ends or the system refuses to read on */
} pyf_range;
/* Reads ranges of an open file (a descriptor) by up to `threads` threads. */
PYF_API int pyf_read_ranges(int file, pyf_range* ranges, size_t count, int threads);

/* Chunks of an array in memory, in C order of their grid. The first one begins `begin` values before the array does,
 * and the last ones may reach beyond it. Lists have `rank` entries. */
typedef struct pyf_grid {
  void* values;
  const int64_t* strides;  /* bytes */
  const uint64_t* extents; /* of the array */
  const uint64_t* begin;
  const uint64_t* chunk;
  uint32_t rank; /* 1..32 */
  uint32_t item_bytes;
} pyf_grid;
/* Reads the frames of all chunks of a grid, ranges of an open file (`to` is not used), and decodes what the array has
 * of them to it. `done` becomes `bytes` of each chunk that was; it stays 0 where nothing was stored (`bytes` is 0), and
 * where reading or decoding failed, which pyf_decode of the same bytes explains. */
PYF_API int pyf_read_grid(const pyf_grid* grid, uint8_t dtype, int file, pyf_range* ranges, size_t count, int threads);
/* Encodes all chunks of a grid, values outside of the array being *padding, to frames every frame_stride bytes. A chunk
 * that cannot be encoded, which pyf_encode explains, has frame_bytes 0. */
PYF_API int pyf_encode_grid(const pyf_request* request, const pyf_grid* grid, const void* padding, void* frames,
                            size_t frame_stride, uint64_t* frame_bytes, size_t count, int threads);

/* Progressive frames in part (docs/format.md, section 13). `available` bytes of the frame are at hand. */
typedef struct pyf_progressive {
  uint64_t prefix_bytes; /* of the frame, before its first segment: the least that the other two functions need */
  uint32_t segments;
  uint32_t levels; /* coarser grids than the whole one: levels 1 to this */
} pyf_progressive;
typedef struct pyf_progressive_part { /* a segment, in the order in which they are to be fetched */
  uint64_t offset, size;              /* in the frame */
  double error;         /* the largest error of the values once it and all before it are there; infinite: not told */
  uint32_t level, unit; /* only grids of this level and finer ones need it */
} pyf_progressive_part;
/* `available`: the whole frame, or at least its header and 132 bytes */
PYF_API int pyf_progressive_summary(const void* frame, size_t available, pyf_progressive* summary);
/* `count` must be summary.segments, `available` at least summary.prefix_bytes. With a level above 0 errors are those of
 * the values of that grid, of which segments of finer levels are not needed. */
PYF_API int pyf_progressive_parts(const void* frame, size_t available, uint32_t level, pyf_progressive_part* parts,
                                  uint32_t count);
/* Values of the grid of `level` (every 2^level-th one along each dimension) from the first `segments` segments. Of the
 * frame only the prefix and those of them that the level needs must be there, at their places. */
PYF_API int pyf_progressive_decode(const void* frame, size_t available, uint32_t segments, uint32_t level, void* values,
                                   size_t value_bytes);

/* What a tolerance needs of a progressive frame at level 0. */
typedef struct pyf_progressive_choice {
  uint64_t end;      /* behind the last byte that is needed of the frame */
  double error;      /* that is left; infinite: not told */
  uint32_t chosen;   /* of the segments */
  uint32_t segments; /* in all */
  uint32_t levels;
  uint32_t known; /* 0: nothing of this is known, and the functions above say why */
} pyf_progressive_choice;
/* Reads the first head_bytes bytes of frames, ranges of an open file, to `to`, and chooses the first segments of each
 * that leave no larger error than the tolerance; all of them where none do. `done` becomes what was read. `like`: type
 * and shape of the frames. */
PYF_API int pyf_progressive_choose(int file, pyf_range* ranges, size_t count, size_t head_bytes,
                                   const pyf_request* like, double tolerance, pyf_progressive_choice* choices,
                                   int threads);

/* key: "threads" (0..1024, 0 = one per core), "local_threads" (this thread only), "cpu_level" (auto, baseline, avx2,
 * avx512), "backend" (auto, cpu, cuda), "release_memory" (any value: pooled device memory goes back to the driver) */
PYF_API int pyf_configure(const char* key, const char* value);
/* Value in use, NULL for an unknown key; also "cuda" (the CUDA library is there: 0/1), "cuda_problem" (why not) and
 * "cuda_devices" (usable here; asking initialises CUDA). */
PYF_API const char* pyf_config(const char* key);

/* Registers the filter with a libhdf5 that is already loaded in this process. `path` is its file as the loader knows
 * it (from /proc/self/maps), or NULL for the symbols of the main program. */
PYF_API int pyf_register(const char* path);

/* cd_values as a user gives them -> request fields (codec, bound, parameters); the inverse of what Python packs.
 * Accepts both the user's form and the stored form; shape, dtype and fill are filled in from the stored form (fill 0
 * where it names none: HDF5's padding, which must not count in the range of a relative bound). */
PYF_API int pyf_parse_cd_values(const unsigned* cd_values, size_t count, pyf_request* request);

/* The GPU: pointers marked "device" are device memory of the current device; work is put on `stream` (a cudaStream_t,
 * NULL: the default stream) and the calls return without waiting. All chunks of a call have one shape and dtype. */

/* Chunk i: values at values + i * value_stride (device), frame to frames + i * frame_stride (device; room for
 * pyf_max_frame_bytes each), its size to frame_bytes[i] (device). Values must be aligned to their dtype, frames to 8.
 */
PYF_API int pyf_cuda_encode(const pyf_request* request, size_t count, const void* values, size_t value_stride,
                            void* frames, size_t frame_stride, uint64_t* frame_bytes, void* stream);

/* Frames of a batch, one behind the other: frame i of slots + i * slot_bytes (device; a multiple of 16) to where it
 * ends before packed + ends[i] (device; a multiple of 16). sizes and ends are device memory. */
PYF_API int pyf_cuda_pack(const void* slots, size_t slot_bytes, const uint64_t* sizes, const uint64_t* ends,
                          size_t count, void* packed, void* stream);

typedef struct pyf_cuda_frame {
  const void* header;  /* a copy in host memory of the frame's first bytes, at least its header (at most 312) */
  size_t header_bytes; /* bytes of that copy */
  const void* frame;   /* device, aligned to 4 */
  size_t frame_bytes;
  void* values; /* device, aligned to the dtype: (stop - start) values */
} pyf_cuda_frame;

/* Values [start, stop) of each frame, value_bytes bytes each. faults[i] (device) becomes 0, or what pyf_cuda_fault
 * turns into a pyf_code and the text of pyf_last_error. Where there is a fault, what the values are is undefined. */
PYF_API int pyf_cuda_decode(const pyf_cuda_frame* frames, size_t count, uint64_t start, uint64_t stop,
                            size_t value_bytes, uint32_t* faults, void* stream);
PYF_API int pyf_cuda_fault(uint32_t fault);

/* pyf_progressive_decode for values in device memory, aligned to the dtype. The frame is in host memory; the call
 * copies what it needs of it and waits. */
PYF_API int pyf_cuda_progressive_decode(const void* frame, size_t available, uint32_t segments, uint32_t level,
                                        void* values, size_t value_bytes, void* stream);

/* Many chunks between host memory and a file through several devices, each with channels: a thread of a channel takes a
 * batch of chunks from its first copy to its last, and channels overlap. Who calls owns all memory. */
typedef struct pyf_cuda_channel {
  int32_t device;
  int32_t reserved;
  void* stream;
  void* values; /* device: those of a batch */
  void* frames; /* device: writing, frame_stride for each chunk of a batch; reading, host_frame_bytes */
  void* notes;  /* device: 8 bytes for each chunk of a batch */
  void*
      host_values; /* pinned, for values on their way, with a grid at least two chunks; NULL: the caller's are pinned */
  void* host_frames;       /* pinned: writing, at least frame_stride */
  void* host_notes;        /* pinned, as notes */
  size_t host_value_bytes; /* a multiple of 128 */
  size_t host_frame_bytes;
} pyf_cuda_channel;

enum pyf_chunk_state { PYF_CHUNK_WAITING, PYF_CHUNK_DONE, PYF_CHUNK_LEFT };
typedef struct pyf_cuda_chunks { /* in host memory */
  void* values;                  /* one chunk behind the other; not used with a grid */
  const pyf_grid* grid;          /* or NULL: their array, of which they are chunk grid_first and those behind */
  size_t grid_first;
  const void* padding; /* with a grid: a value outside of the array */
  size_t chunk_bytes;
  size_t count;
  size_t batch;   /* chunks that a channel takes at a time */
  uint8_t* state; /* of each chunk, set by the call: done, or left to the caller, whose own calls say why it was not */
  double seconds; /* when no further batch is begun: the chunks behind are still waiting then */
} pyf_cuda_chunks;

typedef struct pyf_chunk_writer { /* H5Dwrite_chunk, and chunks of what to write */
  int (*write)(int64_t dataset, int64_t transfer, uint32_t mask, const uint64_t* origin, size_t bytes,
               const void* frame);
  int64_t dataset;
  const uint64_t* origins; /* rank numbers each: a chunk's first coordinates */
  uint64_t rank;
} pyf_chunk_writer;
/* Encodes chunks; the calling thread writes their frames in the order in which they are ready. Chunks that could not be
 * encoded or written, and those whose frame has as many bytes as its values, are left to the caller; once a chunk could
 * not be written, all that were not. */
PYF_API int pyf_cuda_write_chunks(const pyf_request* request, const pyf_cuda_chunks* chunks,
                                  const pyf_cuda_channel* channels, size_t channel_count, size_t frame_stride,
                                  const pyf_chunk_writer* writer);
/* Reads frames, ranges of an open file, and decodes them. A frame's bytes are kept at `to` where that is not NULL;
 * `done` becomes how many there are. `segments`: NULL, or how many segments of progressive frames are in these ranges,
 * which are decoded to grids of `level`. */
PYF_API int pyf_cuda_read_chunks(uint8_t dtype, const pyf_cuda_chunks* chunks, const pyf_cuda_channel* channels,
                                 size_t channel_count, int file, pyf_range* ranges, const uint32_t* segments,
                                 uint32_t level);

/* pyf_particle_order with values and particles in device memory, values aligned to their dtype. */
PYF_API int pyf_cuda_particle_order(const pyf_request* request, const void* values, size_t value_bytes,
                                    uint32_t* particles, void* stream);

#ifdef __cplusplus
}
#endif
#endif
