// Paths that lead to the same files when the program changes its folder: a checkpoint opens files anew under
// them, as long as it is open. Errors show them as the caller gave them:
//
//   StablePaths paths;
//   paths.keep(path, options);          "ckpt" becomes "/data/ckpt", and so do the paths of the options
//   paths.guarded([&] { ... });         an error about "/data/ckpt/x" leaves as one about "ckpt/x"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/boundary.h"
#include "options/fields.h"

namespace mckpt::impl {

class StablePaths {
 public:
  // Makes the path and each path among the fields of `options` absolute.
  template <typename Options>
  void keep(std::string& path, Options& options) {
    keep(path);
    Fields v(*this);
    fields(options, v);
  }
  // The text with the paths in it as the caller gave them: those in the folder of the program are relative
  // again, but for what the caller gave as an absolute path.
  std::string as_given(std::string_view text) const;
  // Calls fn as impl::guarded() does.
  template <typename Fn>
  auto guarded(Fn&& fn) const -> decltype(fn()) {
    try {
      return impl::guarded(fn);
    } catch (const mckpt::Error& e) {
      throw mckpt::Error(as_given(e.facts()));
    }
  }

 private:
  class Fields final : public FieldVisitor {
   public:
    explicit Fields(StablePaths& paths) : paths_(paths) {}
    void field(const Field& field, FieldValue value) override;

   private:
    StablePaths& paths_;
  };

  void keep(std::string& path);
  ErrorFacts as_given(ErrorFacts facts) const;

  std::string folder_;  // of the program, with a slash behind it; "": it is not known, or not needed
  std::vector<std::string> absolute_;  // paths that the caller gave so
  std::vector<std::string> relative_;  // what is shown without `folder_`, with all that is in it
};

}  // namespace mckpt::impl
