// Each handle is an object of the C++ interface with the texts that C functions have lent out. No exception
// leaves a function of this file.
#include "mckpt/c.h"

#include <functional>
#include <map>

#include "api/boundary.h"
#include "api/settings.h"
#include "core/base/text.h"
#include "mckpt/mckpt.h"

struct mckpt_error {
  mckpt::Error error;
};

struct mckpt_checkpoint {
  mckpt::Checkpoint checkpoint;
  std::vector<mckpt::Tensor> tensors;  // in natural order
};

struct mckpt_conversion {
  mckpt::Conversion conversion;
  std::map<std::string, std::int64_t, std::less<>> numbers;  // of the account and the run
};

struct mckpt_report {
  mckpt::Report report;
  std::vector<std::string> lines;  // of the findings
};

namespace {

// Calls fn; an exception becomes an error of C, and `otherwise` is returned.
template <typename Fn, typename Result>
Result returned(mckpt_error** error, Result otherwise, Fn&& fn) noexcept {
  try {
    return mckpt::impl::guarded(fn);
  } catch (const mckpt::Error& e) {
    if (error) *error = new mckpt_error{e};
  }
  return otherwise;
}

// The same for a function whose result is its status.
template <typename Fn>
int status_of(mckpt_error** error, Fn&& fn) noexcept {
  int status = 0;
  returned(error, 0, [&] {
    try {
      mckpt::impl::guarded(fn);
    } catch (const mckpt::Error& e) {
      status = static_cast<int>(e.status());
      throw;
    }
    return 0;
  });
  return status;
}

class CObserver final : public mckpt::Observer {
 public:
  explicit CObserver(const mckpt_observer* to) : to_(to ? *to : mckpt_observer{}) {}

  void begin(const std::string& phase, std::int64_t bytes) override {
    if (to_.begin) to_.begin(to_.user, phase.c_str(), bytes);
  }
  void done(std::int64_t bytes) override {
    if (to_.done) to_.done(to_.user, bytes);
  }
  bool stop() override { return to_.stop && to_.stop(to_.user) != 0; }

 private:
  mckpt_observer to_;
};

mckpt_checkpoint* handle(mckpt::Checkpoint checkpoint) {
  std::vector<mckpt::Tensor> tensors;
  for (const std::string& name : checkpoint.names()) tensors.push_back(checkpoint.tensor(name));
  return new mckpt_checkpoint{std::move(checkpoint), std::move(tensors)};
}

// Proves, and keeps the account by name.
void prove(mckpt_conversion& c, int threads) {
  const mckpt::Account& a = c.conversion.prove(threads);
  c.numbers = {{"tensors_in", a.tensors_in}, {"tensors_out", a.tensors_out},
               {"copied", a.copied},         {"fused", a.fused},
               {"split", a.split},           {"tied", a.tied},
               {"padded", a.padded},         {"changed", a.changed},
               {"dropped", a.dropped},       {"dropped_objects", a.dropped_objects},
               {"invented", a.invented},     {"unpadded", a.unpadded}};
}

std::string line_of(const mckpt::Finding& f) {
  std::string line = mckpt::impl::cat(f.warning ? "warning[" : "problem[", f.code, "]: ");
  if (!f.file.empty()) line += f.file + ": ";
  if (!f.tensor.empty()) line += mckpt::impl::cat("tensor '", f.tensor, "': ");
  return line + f.message;
}

mckpt::Report report_of(const char* path, mckpt::impl::Settings& s, mckpt::Observer* observer) {
  std::optional<std::string> against;
  s.take("against", against);
  if (against) {
    mckpt::CompareOptions options;
    read(s, options);
    s.refuse_rest();
    return mckpt::compare(path, *against, options, observer);
  }
  mckpt::VerifyOptions options;
  read(s, options);
  s.refuse_rest();
  return mckpt::verify(path, options, observer);
}

// Throws kUsage for a null pointer.
const char* given(const char* text, const char* what) {
  if (!text)
    throw mckpt::impl::Error(mckpt::impl::Code::kUsage, mckpt::impl::cat("the ", what, " is a null pointer"));
  return text;
}

std::string_view slice_text(const char* slice) { return slice ? slice : ""; }

}  // namespace

const char* mckpt_version(void) { return mckpt::version(); }

int mckpt_error_status(const mckpt_error* e) { return static_cast<int>(e->error.status()); }
const char* mckpt_error_code(const mckpt_error* e) { return e->error.code().c_str(); }
const char* mckpt_error_text(const mckpt_error* e) { return e->error.what(); }
const char* mckpt_error_help(const mckpt_error* e) { return e->error.facts().help.c_str(); }
void mckpt_error_free(mckpt_error* e) { delete e; }

mckpt_checkpoint* mckpt_open(const char* path, const char* const* settings, mckpt_error** error) {
  return returned(error, static_cast<mckpt_checkpoint*>(nullptr), [&] {
    mckpt::impl::Settings s(settings);
    mckpt::OpenOptions options;
    read(s, options);
    s.refuse_rest();
    return handle(mckpt::open(given(path, "path"), options));
  });
}

mckpt_checkpoint* mckpt_open_as_fsdp(const char* path, const char* const* settings, mckpt_error** error) {
  return returned(error, static_cast<mckpt_checkpoint*>(nullptr), [&] {
    mckpt::impl::Settings s(settings);
    mckpt::SourceOptions options;
    read(s, options);
    s.refuse_rest();
    return handle(mckpt::open_as_fsdp(given(path, "path"), options));
  });
}

const char* mckpt_checkpoint_format(const mckpt_checkpoint* c) { return c->checkpoint.format().data(); }
int64_t mckpt_tensor_count(const mckpt_checkpoint* c) { return std::ssize(c->tensors); }

mckpt_tensor mckpt_tensor_at(const mckpt_checkpoint* c, int64_t number) {
  const mckpt::Tensor& t = c->tensors[number];
  return {t.name.c_str(), t.dtype.c_str(), t.shape.size(), t.shape.data(), t.bytes};
}

int64_t mckpt_read_bytes(const mckpt_checkpoint* c, const char* name, const char* slice,
                         mckpt_error** error) {
  return returned(error, int64_t{-1},
                  [&] { return c->checkpoint.sliced(given(name, "name"), slice_text(slice)).bytes; });
}

int mckpt_read(const mckpt_checkpoint* c, const char* name, const char* slice, void* to, int64_t bytes,
               mckpt_error** error) {
  return status_of(error, [&] {
    c->checkpoint.read_into(
        name, slice_text(slice),
        {static_cast<std::byte*>(to), static_cast<std::size_t>(std::max<int64_t>(bytes, 0))});
  });
}

void mckpt_checkpoint_free(mckpt_checkpoint* c) { delete c; }

mckpt_conversion* mckpt_plan(const char* kind, const char* const* settings, mckpt_error** error) {
  return returned(error, static_cast<mckpt_conversion*>(nullptr), [&] {
    mckpt::impl::Settings s(settings);
    return new mckpt_conversion{mckpt::impl::plan_kind(given(kind, "kind"), s), {}};
  });
}

int mckpt_prove(mckpt_conversion* c, int threads, mckpt_error** error) {
  return status_of(error, [&] { prove(*c, threads); });
}

int mckpt_run(mckpt_conversion* c, const char* const* settings, const mckpt_observer* observer,
              mckpt_error** error) {
  return status_of(error, [&] {
    mckpt::impl::Settings s(settings);
    mckpt::RunOptions options;
    read(s, options);
    s.refuse_rest();
    CObserver to(observer);
    prove(*c, options.threads);
    mckpt::RunReport done = c->conversion.run(options, &to);
    c->numbers.insert({{"bytes", done.bytes},
                       {"bytes_read", done.bytes_read},
                       {"bytes_written", done.bytes_written},
                       {"rounded_norms", done.rounded_norms},
                       {"became_infinite", done.became_infinite},
                       {"became_zero", done.became_zero}});
  });
}

const char* mckpt_conversion_path(const mckpt_conversion* c) { return c->conversion.path().c_str(); }

int64_t mckpt_conversion_number(const mckpt_conversion* c, const char* name) {
  auto number = c->numbers.find(std::string_view(name));
  return number != c->numbers.end() ? number->second : -1;
}

void mckpt_conversion_free(mckpt_conversion* c) { delete c; }

mckpt_report* mckpt_verify(const char* path, const char* const* settings, const mckpt_observer* observer,
                           mckpt_error** error) {
  return returned(error, static_cast<mckpt_report*>(nullptr), [&] {
    mckpt::impl::Settings s(settings);
    CObserver to(observer);
    mckpt::Report report = report_of(given(path, "path"), s, &to);
    std::vector<std::string> lines;
    for (const mckpt::Finding& f : report.findings) lines.push_back(line_of(f));
    return new mckpt_report{std::move(report), std::move(lines)};
  });
}

int mckpt_report_sound(const mckpt_report* r) { return r->report.sound; }
int mckpt_report_equal(const mckpt_report* r) { return r->report.equal ? *r->report.equal : -1; }
size_t mckpt_report_finding_count(const mckpt_report* r) { return r->lines.size(); }
const char* mckpt_report_finding(const mckpt_report* r, size_t number) { return r->lines[number].c_str(); }
void mckpt_report_free(mckpt_report* r) { delete r; }
