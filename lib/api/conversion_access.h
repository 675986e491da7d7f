// The contents of the interface's Conversion, for the files that plan one.
#pragma once

#include <memory>
#include <utility>

#include "convert/plan/conversion.h"
#include "mckpt/conversion.h"
#include "options/kinds.h"

namespace mckpt {

struct Conversion::State {
  impl::Conversion conversion;
  bool proved = false;
  bool ran = false;
  Account account{};
};

// Makes the objects, whose constructor is private.
struct ConversionAccess {
  static Conversion plan(const impl::AnyConversion& what, int threads);
  static Conversion make(impl::Conversion conversion) {
    return Conversion(std::make_unique<Conversion::State>(Conversion::State{std::move(conversion)}));
  }
};

}  // namespace mckpt
