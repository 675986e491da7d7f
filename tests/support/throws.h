// The error that a call throws, as one comparable line: "MC1201 the zip archive is damaged: ...", or
// "nothing".
#pragma once

#include <string>

#include "core/base/error.h"

namespace mckpt::impl {

template <typename Fn>
std::string thrown_by(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return cat(code_name(e.code()), " ", e.what());
  }
  return "nothing";
}

}  // namespace mckpt::impl
