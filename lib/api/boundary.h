// The border between the library and its users: exceptions of the engine become mckpt::Error, and calls of
// the engine's observer reach the user's.
#pragma once

#include <new>
#include <string>

#include "core/base/error.h"
#include "core/base/observer.h"
#include "mckpt/error.h"
#include "mckpt/observer.h"

namespace mckpt::impl {

mckpt::Error to_public(const Error& error);
// For an exception that is not an Error: running out of memory, or a fault of mckpt itself.
mckpt::Error to_public_out_of_memory();
mckpt::Error to_public_internal(const char* what);

// Calls fn; every exception leaves as a mckpt::Error.
template <typename Fn>
auto guarded(Fn&& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const mckpt::Error&) {
    throw;
  } catch (const Error& e) {
    throw to_public(e);
  } catch (const std::bad_alloc&) {
    throw to_public_out_of_memory();
  } catch (const std::exception& e) {
    throw to_public_internal(e.what());
  }
}

// Passes every call on to the user's observer; without one, does nothing.
class ObserverBridge final : public Observer {
 public:
  explicit ObserverBridge(mckpt::Observer* to) : to_(to) {}

  void begin(const std::string& phase, i64 bytes) override;
  void done(i64 bytes) override;
  void end() override;
  bool stop() override;
  void staged(const std::string& path) override;
  void published() override;
  void note(const Note& note) override;

 private:
  mckpt::Observer* to_;
};

}  // namespace mckpt::impl
