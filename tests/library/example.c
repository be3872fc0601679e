#include <fairway/fairway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(fairway_status status) {
  if (status == FAIRWAY_OK) return;
  fprintf(stderr, "%s\n", fairway_error());
  exit(status);
}

static int print_text(void* context, int32_t token, const char* text, size_t bytes) {
  (void)token;
  fwrite(text, 1, bytes, (FILE*)context);
  return 0; /* go on */
}

int main(int argc, char** argv) {
  fairway_artifact* artifact = NULL;
  fairway_sampling sampling = fairway_default_sampling();
  fairway_tensor tensor;
  size_t tensors = 0;
  const char* prompt = argc > 2 ? argv[2] : "";

  need(fairway_open(argc > 1 ? argv[1] : "model.fwy", 0, &artifact));
  need(fairway_tensor_count(artifact, &tensors));
  need(fairway_tensor_at(artifact, 0, &tensor));
  printf("%lu tensors; %s: %ld x %ld\n", (unsigned long)tensors, tensor.name, (long)tensor.rows, (long)tensor.cols);

  sampling.tokens = 20;
  need(fairway_generate(artifact, prompt, strlen(prompt), &sampling, print_text, stdout));
  printf("\n");
  fairway_close(artifact);
  return 0;
}
