// Copies the facts of the engine's errors into the interface's errors, and defines the functions of
// mckpt::Error and mckpt::Observer that are not in their headers, so that their type information is in the
// library once.
#include "api/boundary.h"

#include "api/public_notes.h"
#include "core/base/error_code.h"
#include "mckpt/mckpt.h"

namespace mckpt {

Error::Error(ErrorFacts facts) : facts_(std::move(facts)) {
  impl::Error text(impl::Code::kInternal, facts_.message);
  if (!facts_.file.empty()) text.file(facts_.file);
  if (!facts_.tensor.empty()) text.tensor(facts_.tensor);
  if (facts_.offset >= 0) text.offset(facts_.offset);
  if (!facts_.expected.empty()) text.expected(facts_.expected);
  if (!facts_.found.empty()) text.found(facts_.found);
  what_ = text.what();
}
Error::Error(const Error&) = default;
Error::~Error() = default;

Observer::Observer() = default;
Observer::~Observer() = default;
void Observer::begin(const std::string&, std::int64_t) {}
void Observer::done(std::int64_t) {}
void Observer::end() {}
bool Observer::stop() { return false; }
void Observer::staged(const std::string&) {}
void Observer::published() {}
void Observer::note(const Note&) {}

const char* version() { return MCKPT_VERSION; }

namespace impl {

mckpt::Error to_public(const Error& e) {
  return mckpt::Error({.code = code_name(e.code()),
                       .status = static_cast<Status>(code_info(e.code()).exit),
                       .message = e.message(),
                       .file = e.file(),
                       .tensor = e.tensor(),
                       .offset = e.offset(),
                       .expected = e.expected(),
                       .found = e.found(),
                       .notes = e.notes(),
                       .help = e.help()});
}

mckpt::Error to_public_out_of_memory() { return to_public(Error(Code::kOutOfMemory, "out of memory")); }
mckpt::Error to_public_internal(const char* what) { return to_public(Error(Code::kInternal, what)); }

void ObserverBridge::begin(const std::string& phase, i64 bytes) {
  if (to_) to_->begin(phase, bytes);
}
void ObserverBridge::done(i64 bytes) {
  if (to_) to_->done(bytes);
}
void ObserverBridge::end() {
  if (to_) to_->end();
}
bool ObserverBridge::stop() { return to_ && to_->stop(); }
void ObserverBridge::staged(const std::string& path) {
  if (to_) to_->staged(path);
}
void ObserverBridge::published() {
  if (to_) to_->published();
}
void ObserverBridge::note(const Note& n) {
  if (to_) to_->note(to_public(n));
}

}  // namespace impl
}  // namespace mckpt
