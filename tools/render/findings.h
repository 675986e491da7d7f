// Prints on stderr what a reader found odd or wrong, for commands whose answer is something else. A finding
// does not end a command: what can be read is shown, and the exit status says that something is wrong.
#pragma once

#include "core/base/error_code.h"
#include "io/store/soundness.h"

namespace mckpt::impl {

class JsonWriter;
class Store;
struct Finding;
struct GlobalFlags;

// Prints the first findings, problems before oddities, and a count of the rest.
void tell_findings(const GlobalFlags& flags, std::span<const Finding> findings, const std::string& root);

// Runs fn, which opens checkpoints. If one of them is refused as damaged, prints its other findings before
// the error is passed on.
template <typename Fn>
auto tell_damage(const GlobalFlags& flags, Fn&& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const DamagedCheckpoint& e) {
    tell_findings(flags, e.others(), e.root());
    throw;
  }
}

// Runs fn, which returns an Opened, as tell_damage() does; prints what is odd about it.
template <typename Fn>
auto tell_opened(const GlobalFlags& flags, Fn&& fn) -> decltype(fn()) {
  auto opened = tell_damage(flags, fn);
  for (const Oddities& odd : opened.damage) tell_findings(flags, odd.findings, odd.root);
  return opened;
}

// Writes an array of objects, as in `inspect` (problems) and `verify` (findings).
void write_findings(JsonWriter& json, std::span<const Finding> findings);

// Prints the first findings and counts the rest. kNo when anything is wrong, kOk otherwise.
Exit report_findings(const GlobalFlags& flags, const Store& store);

// Warns, on stderr, that numbers of the store which are shown are codes and scales that nothing decodes.
void warn_of_codes(const GlobalFlags& flags, const Store& store, const std::string& path);

}  // namespace mckpt::impl
