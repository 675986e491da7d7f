// Collects the error stack of the HDF5 library as one line. The stack has an entry for each function that
// failed; the first says what the caller wanted, the last what was wrong.
#include "hdf5/handle.h"

namespace mckpt::impl {
namespace {

struct Words {
  std::string outer, inner;
};

herr_t note(unsigned, const H5E_error2_t* error, void* context) {
  Words& words = *static_cast<Words*>(context);
  std::string text = error->desc ? error->desc : "";
  if (words.inner.empty()) words.inner = text;
  words.outer = text;
  return 0;
}

}  // namespace

std::string library_words() {
  Words words;
  if (H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note, &words) < 0 || words.inner.empty())
    return "the HDF5 library does not say why";
  return words.outer == words.inner ? words.inner : words.outer + ": " + words.inner;
}

}  // namespace mckpt::impl
