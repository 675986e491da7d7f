/* Writes a sharded checkpoint as a Hugging Face folder, and prints the first values of a tensor of it. */
#include <inttypes.h>
#include <mckpt/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(mckpt_error* error) {
  int status = mckpt_error_status(error);
  fprintf(stderr, "%s: %s\n", mckpt_error_code(error), mckpt_error_text(error));
  mckpt_error_free(error);
  return status;
}

static void count_bytes(void* user, int64_t bytes) { *(int64_t*)user += bytes; }

int main(int count, char** words) {
  char source[4096], target[4096];
  const char* settings[] = {source, target, "max_shard_size=8000", NULL};
  int64_t seen = 0;
  mckpt_observer observer = {NULL, NULL, NULL, NULL};
  mckpt_error* error = NULL;
  mckpt_conversion* conversion;
  mckpt_checkpoint* result;
  uint16_t values[4];

  if (count != 4) return 2;
  snprintf(source, sizeof source, "source=%s", words[1]);
  snprintf(target, sizeof target, "target=%s", words[2]);
  observer.user = &seen;
  observer.done = count_bytes;

  conversion = mckpt_plan("to-hf", settings, &error);
  if (!conversion || mckpt_run(conversion, NULL, &observer, &error) != 0) return failed(error);
  printf("%" PRId64 " out, %" PRId64 " invented, progress %s\n", mckpt_conversion_number(conversion, "tensors_out"),
         mckpt_conversion_number(conversion, "invented"), seen > 0 ? "seen" : "not seen");
  mckpt_conversion_free(conversion);

  result = mckpt_open(words[2], NULL, &error);
  if (!result || mckpt_read(result, words[3], "[:4]", values, sizeof values, &error) != 0) return failed(error);
  printf("%s: %04x %04x %04x %04x\n", mckpt_checkpoint_format(result), values[0], values[1], values[2], values[3]);
  mckpt_checkpoint_free(result);
  return 0;
}
