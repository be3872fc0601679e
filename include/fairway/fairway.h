/* Reads Fairway's artifacts (.fwy): their tensors, what their model says of tokens, text from it.
 *
 * Errors. Every function that can fail returns a fairway_status. After anything but FAIRWAY_OK, fairway_error() is the reason
 * as one sentence in UTF-8. After FAIRWAY_BAD_INPUT outputs are as they were. No exception leaves the library and no input ends
 * the program: a damaged file, a null pointer or a number out of range is FAIRWAY_BAD_INPUT. Pointers to memory that is not
 * there cannot be seen.
 *
 * Threads. Functions may be called from any thread. Artifacts are independent of one another. On one artifact, logits and text
 * are computed one call at a time, and further calls wait; all others run side by side. fairway_set_tokenizer() and
 * fairway_close() need the artifact for themselves. The results do not depend on the number of threads. An artifact has threads
 * of its own, which fork() does not copy: a child process opens its own, and is refused with the parent's.
 *
 * Versions. The library's name changes (libfairway.so.0 to libfairway.so.1) with each change that programs compiled before it
 * would notice; fairway_version() is that of the program.
 */
#ifndef FAIRWAY_FAIRWAY_H
#define FAIRWAY_FAIRWAY_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FAIRWAY_API __attribute__((visibility("default")))
#else
#define FAIRWAY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fairway_artifact fairway_artifact;

typedef enum fairway_status {
  FAIRWAY_OK = 0,
  FAIRWAY_FAILED = 1,   /* the work itself: no memory, a defect of the library */
  FAIRWAY_BAD_INPUT = 2 /* the file or an argument: the caller's to mend */
} fairway_status;

FAIRWAY_API const char* fairway_version(void); /* "0.1.0" */

/* The sentence of this thread's last call that failed, until its next one that fails; "" before. */
FAIRWAY_API const char* fairway_error(void);

/* Opens an artifact and reads all of it. threads: of its computations, at most 256; 0: as many as the machine has. The bytes
 * may be freed after the call. */
FAIRWAY_API fairway_status fairway_open(const char* path, int threads, fairway_artifact** artifact);
FAIRWAY_API fairway_status fairway_open_bytes(const void* bytes, size_t size, int threads, fairway_artifact** artifact);
FAIRWAY_API void fairway_close(fairway_artifact* artifact); /* null: nothing happens */

/* What the file says of itself, as a JSON object in UTF-8: bytes, weights, looped, train_length, segment, tokenizer
 * and recipe_hash (hexadecimal, perhaps empty), carries_tokenizer, and model with the recipe's keys. It lives as long as the
 * artifact. */
FAIRWAY_API fairway_status fairway_describe(fairway_artifact* artifact, const char** json);

/* Tensors, in the order of the file. A bank that is stacked over layers is stored matrix by matrix: "bank.up[3]". */
#define FAIRWAY_MOST_DIMENSIONS 4
typedef struct fairway_tensor {
  const char* name;                       /* these three live as long as the artifact */
  const char* role;                       /* whose stream of the file: token, query, key, value, output, up, down, other */
  const char* coding;                     /* integer_rows, half or single */
  int32_t bits;                           /* of the integers, 2 to 8; 16 and 32 of the other codings */
  int32_t correction_rank;                /* of a low-rank correction that is added to the integers' product; 0: none */
  int32_t dimensions;                     /* 0: one number */
  int64_t shape[FAIRWAY_MOST_DIMENSIONS]; /* row by row in memory; 1 after the last dimension */
  int64_t count;                          /* of all elements */
  int64_t rows, cols;                     /* the same elements as the matrix that was quantized */
} fairway_tensor;

FAIRWAY_API fairway_status fairway_tensor_count(fairway_artifact* artifact, size_t* count);
FAIRWAY_API fairway_status fairway_tensor_at(fairway_artifact* artifact, size_t index, fairway_tensor* tensor);
FAIRWAY_API fairway_status fairway_tensor_index(fairway_artifact* artifact, const char* name, size_t* index);

/* Weights as the model computes with them. `count` is the room in `values` and must be the tensor's count. */
FAIRWAY_API fairway_status fairway_floats(fairway_artifact* artifact, size_t index, float* values, size_t count);

/* Of tensors of integers: weight(r, c) = integers(r, c) * row_steps(r) * column_steps(c), and the correction on top where
 * there is one. Each may be null if it is not wanted; else it has room for rows*cols, rows and cols numbers. */
FAIRWAY_API fairway_status fairway_integers(fairway_artifact* artifact, size_t index, int8_t* integers, float* row_steps,
                                            float* column_steps);

/* What the model says after each of these tokens: logits (count, vocab), row t from tokens 0 to t. A document begins with token
 * 1. At most 2^20 tokens. `room` is the number of floats that fit and must be count*vocab. */
FAIRWAY_API fairway_status fairway_vocab(fairway_artifact* artifact, size_t* vocab);
FAIRWAY_API fairway_status fairway_logits(fairway_artifact* artifact, const int32_t* tokens, size_t count, float* logits,
                                          size_t room);

/* Text needs the tokenizer that the model was made with: the one that the artifact carries, or this SentencePiece model. Where
 * the artifact tells its tokenizer, another one is refused. */
FAIRWAY_API fairway_status fairway_set_tokenizer(fairway_artifact* artifact, const char* path);

/* The text's tokens, without the 1 that begins a document. `count` becomes their number, also where it is more than `room`,
 * which is an error; a text has at most as many tokens as bytes, and one more. */
FAIRWAY_API fairway_status fairway_encode(fairway_artifact* artifact, const char* text, size_t bytes, int32_t* tokens,
                                          size_t room, size_t* count);

typedef struct fairway_sampling {
  int64_t tokens;     /* to make, 1 to 2^24; fewer where the document ends */
  int64_t context;    /* window of the model, 1 to 2^20; 0: the length it was trained at */
  double temperature; /* 0 to 100; 0: always the likeliest token */
  int64_t top_k;      /* draw from the k likeliest, at most 2^24; 0: all */
  double top_p;       /* draw from the likeliest that together have this probability; 1: all */
  uint64_t seed;
} fairway_sampling;

/* What `fairway generate` does without flags: 128 tokens at temperature 0.8, seed 1. */
FAIRWAY_API fairway_sampling fairway_default_sampling(void);

/* Called for each new token with the text that can be printed now, which is not ended by a zero and may be empty: half a letter
 * is held back. token is -1 for what was held back at the end. Returns 0 to go on; anything else ends the text. It must
 * not throw, nor compute with the same artifact. */
typedef int (*fairway_told)(void* context, int32_t token, const char* text, size_t bytes);

/* Continues a text: the same as `fairway generate` with these flags. sampling null: the default. */
FAIRWAY_API fairway_status fairway_generate(fairway_artifact* artifact, const char* prompt, size_t bytes,
                                            const fairway_sampling* sampling, fairway_told told, void* context);

/* Continues tokens, exactly these, without a tokenizer: `room` becomes how many were made, at first how many fit, which must
 * be sampling's number of them or more. */
FAIRWAY_API fairway_status fairway_continue(fairway_artifact* artifact, const int32_t* tokens, size_t count,
                                            const fairway_sampling* sampling, int32_t* made, size_t* room);

#ifdef __cplusplus
}
#endif

#endif
