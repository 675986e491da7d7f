// The version, texts, errors and watches of the C interface. No exception leaves a function of the C
// interface.
#include "mckpt/c.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "api/c_call.h"
#include "api/public_json.h"
#include "core/base/text.h"

namespace mckpt::impl {

char* c_text(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

void refuse_null(const char* what) { throw Error(Code::kUsage, cat("the ", what, " is a null pointer")); }

}  // namespace mckpt::impl

struct mckpt_watch {
  std::mutex mutex;  // of phase, bytes and ended
  std::string phase;
  std::int64_t bytes = 0;
  std::vector<std::pair<std::string, std::int64_t>> ended;  // phases before it, with their bytes
  std::atomic<std::int64_t> done = 0;
  std::atomic<bool> stop = false;
};

const char* mckpt_version(void) { return mckpt::version(); }
void mckpt_text_free(char* text) { std::free(text); }

int mckpt_error_status(const mckpt_error* e) { return static_cast<int>(e->error.status()); }
const char* mckpt_error_code(const mckpt_error* e) { return e->error.code().c_str(); }
const char* mckpt_error_text(const mckpt_error* e) { return e->error.what(); }
const char* mckpt_error_help(const mckpt_error* e) { return e->error.facts().help.c_str(); }
void mckpt_error_free(mckpt_error* e) { delete e; }

char* mckpt_error_json(const mckpt_error* e) {
  return mckpt::impl::c_written(nullptr,
                                [&](std::string& to) { mckpt::impl::write_json(to, e->error.facts()); });
}

mckpt_watch* mckpt_watch_new(void) {
  return mckpt::impl::c_result(nullptr, static_cast<mckpt_watch*>(nullptr), [] { return new mckpt_watch; });
}

mckpt_observer mckpt_watch_observer(mckpt_watch* watch) {
  mckpt_observer observer{};
  observer.user = watch;
  observer.begin = [](void* user, const char* phase, std::int64_t bytes) {
    mckpt_watch& w = *static_cast<mckpt_watch*>(user);
    std::lock_guard lock(w.mutex);
    if (!w.phase.empty()) w.ended.emplace_back(w.phase, w.bytes);
    w.phase = phase, w.bytes = bytes, w.done = 0;
  };
  observer.done = [](void* user, std::int64_t bytes) { static_cast<mckpt_watch*>(user)->done += bytes; };
  observer.stop = [](void* user) -> int { return static_cast<mckpt_watch*>(user)->stop; };
  return observer;
}

void mckpt_watch_stop(mckpt_watch* watch) { watch->stop = true; }

char* mckpt_watch_json(mckpt_watch* w) {
  return mckpt::impl::c_written(nullptr, [&](std::string& to) {
    std::lock_guard lock(w->mutex);
    mckpt::impl::JsonWriter json(to);
    json.begin_object().field("phase", w->phase).field("done", w->done.load()).field("bytes", w->bytes);
    json.key("ended").begin_array();
    for (const auto& [phase, bytes] : w->ended)
      json.begin_object().field("phase", phase).field("bytes", bytes).end_object();
    json.end_array().end_object();
  });
}

void mckpt_watch_free(mckpt_watch* watch) { delete watch; }
