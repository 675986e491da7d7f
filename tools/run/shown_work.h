// How commands that only read watch long work of the library: progress on stderr, notes, and an end at a
// signal such as Ctrl-C.
#pragma once

#include <optional>

#include "core/base/notes.h"
#include "core/base/observer.h"
#include "tools/process/interrupt.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"
#include "tools/render/progress.h"

namespace mckpt::impl {

// Made before the work begins: from then on signals set the stop flag instead of ending the program. One
// phase is shown at a time.
class ShownWork final : public Observer {
 public:
  explicit ShownWork(const GlobalFlags& flags) : flags_(flags) { stop_flag(); }

  void begin(const std::string& phase, i64 bytes) override { progress_.emplace(flags_, phase, bytes); }
  void done(i64 bytes) override {
    if (progress_) progress_->add(bytes);
  }
  void end() override { progress_.reset(); }
  bool stop() override { return *stop_flag(); }
  void note(const Note& note) override {
    Notes notes;
    note.kind == Note::Kind::kWarning ? notes.warn(note.text) : notes.note(note.text);
    print_notes(flags_, notes);
  }

 private:
  const GlobalFlags& flags_;
  std::optional<Progress> progress_;
};

}  // namespace mckpt::impl
