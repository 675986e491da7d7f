// An interpreter calls these functions when it no longer needs memory that it got from here. The error
// indicator of the interpreter is put aside meanwhile: objects of Python may be freed at any moment, also
// between raising an exception and catching it.
#include "mckpt/c_python.h"

#include "api/dlpack.h"

namespace {

mckpt_python python{};

// Keeps the exception that is on its way as it is.
class ExceptionInFlight {
 public:
  ExceptionInFlight() { python.fetch(&type_, &value_, &trace_); }
  ~ExceptionInFlight() { python.restore(type_, value_, trace_); }
  ExceptionInFlight(const ExceptionInFlight&) = delete;
  ExceptionInFlight& operator=(const ExceptionInFlight&) = delete;

 private:
  void *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

}  // namespace

void mckpt_python_set(const mckpt_python* functions) { python = *functions; }

void mckpt_python_capsule_ends(void* capsule) {
  constexpr const char* kUnused = "dltensor";  // who takes it over gives it another name
  ExceptionInFlight kept;
  if (!python.is_valid(capsule, kUnused)) return;
  auto* managed = static_cast<mckpt::impl::DlpackManaged*>(python.pointer(capsule, kUnused));
  if (managed->deleter) managed->deleter(managed);
}

void mckpt_python_deleter(void* managed) {
  if (!python.is_initialized()) return;  // the process ends, and its memory with it
  const int state = python.ensure();
  {
    ExceptionInFlight kept;
    python.decref(static_cast<mckpt::impl::DlpackManaged*>(managed)->context);
  }
  python.release(state);
}
