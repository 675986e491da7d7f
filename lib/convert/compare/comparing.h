// Comparing: the request of a comparison, and the places for findings, as every step of it gets them.
#pragma once

namespace mckpt::impl {

class Comparison;
class Observer;
struct CompareOptions;
struct VerifyReport;

// References only; it lives during one comparison.
struct Comparing {
  const CompareOptions& options;
  Comparison& comparison;
  Observer& observer;
  VerifyReport& report;
};

}  // namespace mckpt::impl
