// What a conversion keeps alive for its pointers.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace mckpt::impl {

// Values that refer to each other, such as a store, its keys and its chunks. Each is allocated by itself, so
// that its address stays when Parts is moved; they are destroyed in the reverse of the order in which they
// were made.
class Parts {
 public:
  Parts() = default;
  Parts(Parts&&) = default;
  Parts& operator=(Parts&&) = delete;
  ~Parts() {
    while (!list_.empty()) list_.pop_back();
  }

  template <typename T, typename... Arguments>
  T& make(Arguments&&... arguments) {
    return keep(std::make_unique<T>(std::forward<Arguments>(arguments)...));
  }
  template <typename T>
  T& keep(std::unique_ptr<T> part) {
    T& kept = *part;
    list_.push_back(std::shared_ptr<T>(std::move(part)));
    return kept;
  }

 private:
  std::vector<std::shared_ptr<void>> list_;
};

}  // namespace mckpt::impl
