/* SPDX-License-Identifier: BSD-3-Clause
 * The C ABI that Python (ctypes) and other programs call. C99. Every function returns a pyf_code (0: success) unless
 * its comment says otherwise; after a failure pyf_last_error() has the text. No function prints, exits or throws. */
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
  uint64_t fill;             /* bit pattern of the fill value in host order, zero-extended; if complex its real part */
  uint8_t parameters[8];     /* codec parameters, by their registry "byte" */
  uint8_t source_big_endian; /* 0 or 1: only recorded in the frame */
  uint8_t without_zeros;     /* 0 or 1: zeros do not count for the range of a relative bound or psnr */
  uint8_t reserved[2];
  int32_t rank; /* 0..32 */
  uint64_t dims[32];
  uint64_t fill_imaginary; /* of a complex fill value: bit pattern of the imaginary part */
} pyf_request;

/* Fields of a frame's header. */
typedef struct pyf_info {
  uint32_t struct_bytes;
  uint8_t format_version;
  uint8_t codec;
  uint8_t dtype;
  uint8_t stored_raw;
  uint8_t source_big_endian;
  uint8_t has_sentinel;
  uint8_t pointwise; /* 1: the bound is relative to each value, the step is of log2 |x| */
  uint8_t reserved;
  int32_t rank;
  double bound;
  double step;
  uint64_t sentinel; /* of complex values that of both parts */
  uint8_t parameters[8];
  uint64_t header_bytes;
  uint64_t frame_bytes;
  uint64_t value_count;
  uint64_t value_bytes;
  uint64_t dims[32];
  double carried_bound; /* if above bound: the error bound of values decoded and encoded again; else 0 */
} pyf_info;

PYF_API uint32_t pyf_abi_version(void);
PYF_API const char* pyf_version(void);    /* "0.1.0" */
PYF_API const char* pyf_last_error(void); /* of this thread; never NULL */

PYF_API int pyf_check_request(const pyf_request* request);
PYF_API size_t pyf_max_frame_bytes(const pyf_request* request); /* 0: request invalid or too large */
PYF_API int pyf_encode(const pyf_request* request, const void* values, size_t value_bytes, void* frame,
                       size_t frame_capacity, size_t* frame_bytes);
/* Encodes values of which some were decoded from `old`, a frame of the same dtype and shape. With a bound that depends
 * on the range (relative, psnr) these values keep their error, or get one within the new bound. `frame` has at least
 * pyf_max_frame_bytes() bytes. */
PYF_API int pyf_encode_updated(const pyf_request* request, const void* values, size_t value_bytes, const void* old,
                               size_t old_bytes, void* frame, size_t frame_capacity, size_t* frame_bytes);
PYF_API int pyf_frame_info(const void* frame, size_t available, pyf_info* info);
PYF_API int pyf_decode(const void* frame, size_t frame_bytes, void* values, size_t value_bytes);
PYF_API int pyf_decode_range(const void* frame, size_t frame_bytes, uint64_t start, uint64_t stop, void* values,
                             size_t value_bytes);
/* Lowest and highest finite value, without the fill value; *found = 0 if there is none. An integer that no double
 * represents is rounded into the range. */
PYF_API int pyf_value_range(const pyf_request* request, const void* values, size_t value_bytes, double* low,
                            double* high, int* found);

/* Records (compound types; docs/format.md, section 17): a frame with a column for each field. Columns are in the order
 * of their bytes in a record and make up all of it. */
typedef struct pyf_records {
  uint32_t struct_bytes;
  uint32_t columns;
  const pyf_request* requests; /* one a column; rank and dims: of a field that is an array; dtype 0: bytes of no type */
  const uint32_t* bytes;       /* of a record, in each column */
  const uint64_t* dims;        /* of the array of records */
  int32_t rank;                /* 0..32 */
  uint32_t reserved;
} pyf_records;

typedef struct pyf_records_info {
  uint32_t struct_bytes;
  uint32_t columns;
  uint64_t record_bytes;
  uint64_t record_count;
  uint64_t value_bytes;
  uint64_t frame_bytes;
  int32_t rank;
  uint32_t reserved;
  uint64_t dims[32];
} pyf_records_info;

typedef struct pyf_column { /* where a column's own frame is in the frame */
  uint64_t offset;
  uint64_t frame_bytes;
  uint32_t bytes;      /* of a record */
  uint32_t has_values; /* 0: bytes of no type */
} pyf_column;

PYF_API size_t pyf_max_records_bytes(const pyf_records* records); /* 0: invalid or too large */
/* Encodes records in the byte order that the requests say. `old`: a frame that some values were decoded from, or NULL.
 */
PYF_API int pyf_encode_records(const pyf_records* records, const void* values, size_t value_bytes, const void* old,
                               size_t old_bytes, void* frame, size_t frame_capacity, size_t* frame_bytes);
/* `available`: at least header and table. `columns` has room for `capacity` columns; the first ones are set. */
PYF_API int pyf_read_records(const void* frame, size_t available, pyf_records_info* info, pyf_column* columns,
                             size_t capacity);
PYF_API int pyf_decode_records(const void* frame, size_t frame_bytes, void* values, size_t value_bytes);

/* Codec particles: finds the request's order of the particles, an index (uint32_t) for each. */
PYF_API int pyf_particle_order(const pyf_request* request, const void* values, size_t value_bytes, uint32_t* particles);
/* Chunks as they are stored in a file. pyf_list_chunk is a callback for HDF5's H5Dchunk_iter, with a pyf_chunk_list as
 * its op_data. It returns 1, which ends the iteration, if the list is full. */
typedef struct pyf_chunk_list {
  uint64_t capacity; /* of the arrays, in chunks */
  uint64_t count;
  uint64_t rank;
  uint64_t* origins; /* rank numbers each: a chunk's first coordinates */
  uint64_t* offsets; /* in the file */
  uint64_t* sizes;   /* bytes */
  uint32_t* masks;   /* filters that were not applied to the chunk */
} pyf_chunk_list;
PYF_API int pyf_list_chunk(const uint64_t* origin, unsigned mask, uint64_t offset, uint64_t size, void* list);

typedef struct pyf_range { /* bytes of a file, and the memory for them */
  uint64_t offset;
  uint64_t bytes;
  void* to;
  uint64_t done; /* bytes read, set by the call; less than `bytes` if the file ends or reading fails */
} pyf_range;
/* Reads ranges of an open file (a descriptor) with up to `threads` threads. */
PYF_API int pyf_read_ranges(int file, pyf_range* ranges, size_t count, int threads);

/* Chunks of an array in memory, in C order of their grid. The first chunk begins `begin` values before the array; the
 * last chunks may reach beyond its end. All pointers but `values` are to `rank` numbers. */
typedef struct pyf_grid {
  void* values;
  const int64_t* strides;  /* bytes */
  const uint64_t* extents; /* of the array */
  const uint64_t* begin;
  const uint64_t* chunk;
  uint32_t rank; /* 1..32 */
  uint32_t item_bytes;
} pyf_grid;
/* Reads the frames of all chunks of a grid, ranges of an open file (`to` is not used), and decodes them into the array.
 * `done` becomes `bytes` for each decoded chunk. It is 0 if nothing is stored (`bytes` is 0), or if reading or decoding
 * failed; pyf_decode of the same bytes gives the error. */
PYF_API int pyf_read_grid(const pyf_grid* grid, uint8_t dtype, int file, pyf_range* ranges, size_t count, int threads);
/* Encodes all chunks of a grid; values outside of the array are *padding. Frame i goes to frames + i * frame_stride. A
 * chunk that cannot be encoded gets frame_bytes 0; pyf_encode of it gives the error. */
PYF_API int pyf_encode_grid(const pyf_request* request, const pyf_grid* grid, const void* padding, void* frames,
                            size_t frame_stride, uint64_t* frame_bytes, size_t count, int threads);
typedef struct pyf_chunk_writer { /* HDF5's H5Dwrite_chunk, the dataset and its chunks */
  int (*write)(int64_t dataset, int64_t transfer, uint32_t mask, const uint64_t* origin, size_t bytes,
               const void* frame);
  int64_t dataset;
  const uint64_t* origins; /* rank numbers each: a chunk's first coordinates */
  uint64_t rank;
} pyf_chunk_writer;
/* Encodes `count` chunks of a grid from chunk `first` on, and writes them; the calling thread calls HDF5, in C order.
 * *written becomes the number of chunks that were written. It is smaller if `seconds` are over (then signals and other
 * users of HDF5 have their turn), or before a chunk that the caller must do itself: it cannot be encoded, its frame is
 * as large as its values, or HDF5 refuses it. The first chunk is begun in any case. writer->origins: of chunk 0 on. */
PYF_API int pyf_write_grid(const pyf_request* request, const pyf_grid* grid, const void* padding,
                           const pyf_chunk_writer* writer, size_t first, size_t count, int threads, double seconds,
                           uint64_t* written);

/* Progressive frames in part (docs/format.md, section 13). `available`: bytes of the frame that are in memory. */
typedef struct pyf_progressive {
  uint64_t prefix_bytes; /* of the frame, before its first segment: the other two functions need these */
  uint32_t segments;
  uint32_t levels; /* number of coarser grids: levels 1 to `levels` */
} pyf_progressive;
typedef struct pyf_progressive_part { /* a segment; segments are in the order of fetching */
  uint64_t offset, size;              /* of its bytes in the frame */
  double error;         /* bound on the error after decoding this and all earlier segments; infinite: unknown */
  uint32_t level, unit; /* only grids of this level and finer ones need it */
} pyf_progressive_part;
/* `available`: the whole frame, or at least its header and 132 bytes */
PYF_API int pyf_progressive_summary(const void* frame, size_t available, pyf_progressive* summary);
/* `count` must be summary.segments, `available` at least summary.prefix_bytes. With a level above 0, errors are for the
 * values of that grid, which needs no segments of finer levels. */
PYF_API int pyf_progressive_parts(const void* frame, size_t available, uint32_t level, pyf_progressive_part* parts,
                                  uint32_t count);
/* Decodes the grid of `level` (every 2^level-th value along each dimension) from the first `segments` segments. Only
 * the frame's prefix and the segments that the level needs must be in memory, at their offsets. */
PYF_API int pyf_progressive_decode(const void* frame, size_t available, uint32_t segments, uint32_t level, void* values,
                                   size_t value_bytes);

/* The segments of a progressive frame that a tolerance needs at level 0. */
typedef struct pyf_progressive_choice {
  uint64_t end;      /* the first `end` bytes of the frame are needed */
  double error;      /* bound on the error of the values; infinite: unknown */
  uint32_t chosen;   /* segments that are needed */
  uint32_t segments; /* in all */
  uint32_t levels;
  uint32_t known; /* 0: the other fields are not set; the functions above give the error */
} pyf_progressive_choice;
/* Reads the first head_bytes bytes of each frame, a range of an open file, to `to`. Chooses the fewest first segments
 * whose error is within the tolerance, or all segments if the tolerance cannot be met. `done` becomes the number of
 * bytes read. `like`: dtype and shape of the frames. */
PYF_API int pyf_progressive_choose(int file, pyf_range* ranges, size_t count, size_t head_bytes,
                                   const pyf_request* like, double tolerance, pyf_progressive_choice* choices,
                                   int threads);

/* key: "threads" (0..1024, 0 = one per core), "local_threads" (this thread only), "cpu_level" (auto, baseline, avx2,
 * avx512), "backend" (auto, cpu, cuda), "release_memory" (any value: pooled device memory goes back to the driver) */
PYF_API int pyf_configure(const char* key, const char* value);
/* Value in use, NULL for an unknown key; also "cuda" (1 if the CUDA library can be loaded, else 0), "cuda_problem" (why
 * not) and "cuda_devices" (usable devices; asking initialises CUDA). */
PYF_API const char* pyf_config(const char* key);

/* Registers the filter with a libhdf5 that is already loaded in this process. `path` is the file of that libhdf5 (as in
 * /proc/self/maps), or NULL for the symbols of the main program. */
PYF_API int pyf_register(const char* path);

/* Parses cd_values, in the user's form or the stored form, into a request (codec, bound, parameters). The stored form
 * also gives shape, dtype and fill value (0 if it has none: HDF5 pads edge chunks with it, and such padding must not
 * count in the range of a relative bound). */
PYF_API int pyf_parse_cd_values(const unsigned* cd_values, size_t count, pyf_request* request);

/* The GPU. Pointers marked "device" are to memory of the current device. Calls put work on `stream` (a cudaStream_t;
 * NULL: the default stream) and return without waiting. All chunks of a call have one shape and dtype. */

/* Encodes chunk i from values + i * value_stride (device) to frames + i * frame_stride (device; pyf_max_frame_bytes
 * each), and its size to frame_bytes[i] (device). Values must be aligned to their dtype, frames to 8 bytes. */
PYF_API int pyf_cuda_encode(const pyf_request* request, size_t count, const void* values, size_t value_stride,
                            void* frames, size_t frame_stride, uint64_t* frame_bytes, void* stream);

/* Packs the frames of a batch. Frame i is moved from slots + i * slot_bytes (device; a multiple of 16) so that it ends,
 * padded to a multiple of 16 bytes, at packed + ends[i] (device). sizes and ends are device memory. */
PYF_API int pyf_cuda_pack(const void* slots, size_t slot_bytes, const uint64_t* sizes, const uint64_t* ends,
                          size_t count, void* packed, void* stream);

typedef struct pyf_cuda_frame {
  const void* header;  /* a copy in host memory of the frame's first bytes, at least its header (at most 312) */
  size_t header_bytes; /* size of the copy */
  const void* frame;   /* device, aligned to 4 */
  size_t frame_bytes;
  void* values; /* device, aligned to the dtype: (stop - start) values */
} pyf_cuda_frame;

/* Decodes the values [start, stop) of each frame, value_bytes bytes each. faults[i] (device or pinned host memory)
 * becomes 0, or a fault that pyf_cuda_fault turns into a pyf_code and the text of pyf_last_error. Values of a frame
 * with a fault are undefined. */
PYF_API int pyf_cuda_decode(const pyf_cuda_frame* frames, size_t count, uint64_t start, uint64_t stop,
                            size_t value_bytes, uint32_t* faults, void* stream);
PYF_API int pyf_cuda_fault(uint32_t fault);

/* pyf_progressive_decode for values in device memory, aligned to the dtype. The frame is in host memory; the call
 * copies the bytes that it needs to the device, and waits. */
PYF_API int pyf_cuda_progressive_decode(const void* frame, size_t available, uint32_t segments, uint32_t level,
                                        void* values, size_t value_bytes, void* stream);

/* Many chunks between host memory and a file through several devices. A channel is a CUDA stream with buffers for a
 * batch of chunks, used by one thread; a device has several, which overlap. The caller owns all memory. */
typedef struct pyf_cuda_channel {
  int32_t device;
  int32_t reserved;
  void* stream;
  void* values;      /* device: values of a batch */
  void* frames;      /* device: writing, frame_stride for each chunk of a batch; reading, host_frame_bytes */
  void* notes;       /* device: 8 bytes for each chunk of a batch */
  void* host_values; /* pinned: staging buffer, with a grid at least two chunks; NULL: the caller's values are pinned */
  void* host_frames; /* pinned: writing, at least frame_stride */
  void* host_notes;  /* pinned: as large as notes */
  size_t host_value_bytes; /* a multiple of 128 */
  size_t host_frame_bytes;
} pyf_cuda_channel;

enum pyf_chunk_state { PYF_CHUNK_WAITING, PYF_CHUNK_DONE, PYF_CHUNK_LEFT };
typedef struct pyf_cuda_chunks { /* in host memory */
  void* values;                  /* contiguous chunks; not used with a grid */
  const pyf_grid* grid;          /* or NULL; the array's grid, whose chunks from grid_first on are meant */
  size_t grid_first;
  const void* padding; /* with a grid: the value outside of the array */
  size_t chunk_bytes;
  size_t count;
  size_t batch;   /* chunks that a channel takes at a time */
  uint8_t* state; /* pyf_chunk_state of each chunk, set by the call; LEFT: the caller must do the chunk itself */
  double seconds; /* after this time no batch is begun; chunks that were not begun stay waiting */
} pyf_cuda_chunks;

/* Encodes chunks; the calling thread writes their frames as they become ready. Left to the caller are batches with a
 * chunk that could not be encoded or whose frame is as large as its values. If a chunk cannot be written, it and all
 * chunks not yet written are left. */
PYF_API int pyf_cuda_write_chunks(const pyf_request* request, const pyf_cuda_chunks* chunks,
                                  const pyf_cuda_channel* channels, size_t channel_count, size_t frame_stride,
                                  const pyf_chunk_writer* writer);
/* Reads frames, ranges of an open file, and decodes them. A frame's bytes are also stored at `to` unless it is NULL;
 * `done` becomes the number of bytes read. `segments`: NULL, or the number of segments in each range of a progressive
 * frame; such frames are decoded to the grid of `level`. */
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
