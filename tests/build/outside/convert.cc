// Converts a Hugging Face folder for a Megatron-FSDP run on two tensor-parallel ranks, and proves the result.
#include <mckpt/mckpt.h>

#include <cstdio>

int main(int count, char** words) try {
  if (count != 3) return std::fprintf(stderr, "usage: convert HF_FOLDER TARGET\n"), 2;

  mckpt::Checkpoint model = mckpt::open(words[1]);
  for (const std::string& name : model.names("*norm.weight"))
    std::printf("%s %s %s\n", name.c_str(), model.tensor(name).dtype.c_str(), model.digest(name).c_str());

  mckpt::Conversion conversion =
      mckpt::plan(mckpt::ToFsdp{.source = words[1], .target = words[2], .grid = {.tp = 2}});
  const mckpt::Account& account = conversion.prove();
  std::printf("%lld in, %lld out, %lld invented\n", static_cast<long long>(account.tensors_in),
              static_cast<long long>(account.tensors_out), static_cast<long long>(account.invented));
  mckpt::RunReport done = conversion.run({.threads = 2});

  mckpt::Report report = mckpt::compare(done.output, words[1]);
  for (const mckpt::Finding& f : report.findings) std::printf("%s %s\n", f.code.c_str(), f.message.c_str());
  std::printf("%s: %s\n", done.output.c_str(), report.equal.value_or(false) ? "equal" : "different");
  return report.equal.value_or(false) ? 0 : 1;
} catch (const mckpt::Error& e) {
  std::fprintf(stderr, "%s: %s\n", e.code().c_str(), e.what());
  return static_cast<int>(e.status());
}
