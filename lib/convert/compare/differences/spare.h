// Buffers that threads borrow in turn: there come to be as many as threads that work at the same time. A
// thread_local buffer ends the program where the C library has no memory left to note its destructor.
#pragma once

#include <list>
#include <mutex>

namespace mckpt::impl {

template <typename Buffer>
class Spare {
 public:
  // A buffer that no other thread has until the loan ends, with what the last borrower left in it.
  class Loan {
   public:
    explicit Loan(Spare& from) : from_(from) {
      {
        std::lock_guard lock(from_.mutex_);
        if (!from_.free_.empty()) mine_.splice(mine_.begin(), from_.free_, from_.free_.begin());
      }
      if (mine_.empty()) mine_.emplace_back();
    }
    ~Loan() {
      std::lock_guard lock(from_.mutex_);
      from_.free_.splice(from_.free_.begin(), mine_);
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    Buffer& operator*() { return mine_.front(); }
    Buffer* operator->() { return &mine_.front(); }

   private:
    Spare& from_;
    std::list<Buffer> mine_;  // one; a list moves it back without memory
  };

 private:
  std::mutex mutex_;
  std::list<Buffer> free_;
};

}  // namespace mckpt::impl
