// mckpt::Observer: progress, notes and interruption of long work, as functions that the caller overrides.
//
//   class Bar : public mckpt::Observer {
//     void done(std::int64_t bytes) override { total_ += bytes; }
//     bool stop() override { return interrupted; }
//     std::atomic<std::int64_t> total_ = 0;
//   };
//
// Calls come in this order:  begin("write", 1000)  done(400)  done(600)  begin("compare", 0)  ...  end()
#pragma once

#include <cstdint>
#include <string>

#include "mckpt/export.h"
#include "mckpt/note.h"

namespace mckpt {

// Every function does nothing unless it is overridden. No function may throw. The observer belongs to the
// caller and has to live until the call that it was given to returns.
class MCKPT_API Observer {
 public:
  Observer();
  virtual ~Observer();

  // A part of the work begins, and the part before it ends. `bytes`: about how many bytes done() will report
  // (fewer if a run resumes); 0: not known.
  virtual void begin(const std::string& phase, std::int64_t bytes);
  // So many more bytes of the part are done. Called by all threads of the work.
  virtual void done(std::int64_t bytes);
  virtual void end();  // of the last part

  // Asked often, by all threads. True ends the work: Error with Status::kInterrupted is thrown (without a
  // call of end()), and the conversion can be planned again and run: it continues.
  virtual bool stop();

  // From here on an unfinished result is in a hidden folder beside `path`.
  virtual void staged(const std::string& path);
  // The result is complete under its name; an error that comes later leaves it so.
  virtual void published();
  virtual void note(const Note& note);
};

}  // namespace mckpt
