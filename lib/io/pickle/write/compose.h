// Pickles that are made of other pickles: a dict or a list whose values are pickled already.
//
//   {"iteration": <pickle of 10>, "args": <pickle of a Namespace>}   -->   one pickle of both
//
// The values keep their memo slots: each writes a slot before it reads it, so that two values may use the
// same ones.
#pragma once

#include <span>
#include <string>
#include <utility>

namespace mckpt::impl {

// pre, for both: the values are whole pickles of protocol 2, as PickleWriter and copy_pickle() make them.
std::string pickle_dict(std::span<const std::pair<std::string, std::string>> entries);
std::string pickle_list(std::span<const std::string> values);
// A dict with the keys 0, 1, ...
std::string pickle_numbered(std::span<const std::string> values);

}  // namespace mckpt::impl
