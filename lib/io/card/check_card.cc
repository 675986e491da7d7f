// First names and sizes, then one read of all files. For a file that changed, the parts of the card are
// summed a second time, and what is found is compared with all digests of the card.
#include "io/card/check_card.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "io/card/card_files.h"
#include "io/card/changed_file.h"
#include "io/copy/observed_sink.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/file/path_stat.h"
#include "io/listing/listed_file.h"
#include "io/store/findings.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/store/tensor_numbers.h"
#include "io/sums/sha256.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

constexpr const char* kHelp = "copy the file again from where the card was made";

// One check.
class CardChecker {
 public:
  CardChecker(const Card& card, const std::string& path, const CardCheck& options, Observer& observer)
      : card_(card), path_(path), options_(options), observer_(observer), changed_(card) {
    const std::optional<struct stat> st = stat_of(path);
    bool is_folder = st && S_ISDIR(st->st_mode);
    if (!st) throw Error(Code::kNotFound, "there is no such file or folder").file(path);
    if (is_folder == card.single_file)
      throw Error(Code::kUsage, is_folder ? "the card is of one file" : "the card is of a folder")
          .found(escaped(path));
    if (is_folder) folder_ = std::make_unique<Folder>(path, as_files(options.opening));
  }

  VerifyReport run() {
    check_names();
    check_digests();
    return std::move(report_);
  }

 private:
  InputFile open(const CardFile& f) const {
    return folder_ ? folder_->open_file(f.name) : InputFile(path_, options_.opening);
  }

  void check_names() {
    std::vector<Finding> findings;
    for (const CardFile& f : card_.files) {
      std::optional<i64> bytes;
      try {
        bytes = folder_ ? folder_->file_bytes(f.name) : InputFile(path_, options_.opening).size();
      } catch (const Error& e) {  // a pipe, or a link out of the folder
        findings.push_back(to_finding(e));
        findings.back().file = f.name;
        there_.push_back(false);
        continue;
      }
      there_.push_back(bytes.has_value());
      if (std::optional<Finding> unlike =
              unlike_size(bytes, f, {"the card", Code::kNotAsCard, Code::kNotAsCard, kHelp}))
        findings.push_back(std::move(*unlike));
    }
    if (folder_) find_others(findings);
    add({"files", Check::Status::kPass, std::ssize(card_.files), "files"}, std::move(findings));
  }

  bool is_listed(const std::string& name) const {
    auto at = std::ranges::lower_bound(card_.files, name, {}, &CardFile::name);
    return at != card_.files.end() && at->name == name;
  }

  // Files that the card does not have. Hidden ones belong to tools.
  void find_others(std::vector<Finding>& findings) {
    std::vector<std::string> left_out = card_.ignored;
    const std::string own = name_inside(path_, options_.card_path);
    if (!own.empty()) left_out.push_back(own);
    CardFiles now;
    try {
      now = card_files(*folder_, left_out);
    } catch (const Error& e) {
      if (e.code() != Code::kBadPath) throw;
      if (std::ranges::find(findings, e.code(), &Finding::code) == findings.end())
        findings.push_back(to_finding(e));
      return;
    }
    Findings others;
    for (const std::string& name : now.names) {
      if (is_listed(name)) continue;
      bool hidden = name.starts_with('.') || name.find("/.") != name.npos;
      others.add({.code = Code::kNotAsCard,
                  .file = name,
                  .message = "the card does not list the file",
                  .help = hidden ? "" : "remove the file, or make a new card",
                  .warning = hidden});
    }
    std::ranges::move(others.take(), std::back_inserter(findings));
    for (const std::string& name : now.ignored)
      if (name != own && !is_listed(name)) report_.unread.push_back({name, "not on the card"});
  }

  void check_digests() {
    i64 bytes = 0;
    for (const CardFile& f : card_.files) bytes += f.bytes;
    observer_.begin("verify by the card", bytes);
    std::vector<std::vector<Finding>> found(card_.files.size());
    std::vector<char> read(card_.files.size());
    parallel_for(std::ssize(card_.files), options_.threads, [&](int, i64 f) {
      if (there_[f]) read[f] = check_file(card_.files[f], static_cast<i32>(f), found[f]);
    });
    observer_.end();
    Check check{"digests", Check::Status::kPass, 0, "files"};
    for (char r : read) r ? check.count++ : check.unseen++;
    std::vector<Finding> findings;
    for (std::vector<Finding>& of_file : found) std::ranges::move(of_file, std::back_inserter(findings));
    if (check.unseen > 0) check.status = Check::Status::kFail;
    bool changed = !findings.empty();
    add(std::move(check), std::move(findings));
    if (changed) check_unlocated();
  }

  // Tensors whose bytes are in places that only their format knows are compared by their values.
  void check_unlocated() {
    std::map<std::string, std::vector<const CardTensor*>> by_checkpoint;
    for (const CardTensor& t : card_.tensors)
      if (!t.located && !t.sha256.empty()) by_checkpoint[t.checkpoint].push_back(&t);
    if (by_checkpoint.empty()) return;
    std::vector<Finding> findings;
    i64 count = 0;
    for (const auto& [checkpoint, tensors] : by_checkpoint) {
      std::string file = card_.single_file ? card_.name : checkpoint;
      auto add = [&](const std::string& tensor, std::string message) {
        findings.push_back({.code = Code::kNotAsCard,
                            .tensor = tensor,
                            .file = file,
                            .message = std::move(message),
                            .help = kHelp});
      };
      try {
        std::unique_ptr<Store> store =
            open_store(checkpoint.empty() ? path_ : cat(path_, "/", checkpoint), options_.opening);
        StoreFiles files(*store);
        TensorReader reader(*store, files);
        TensorNumbers numbers(*store);
        for (const CardTensor* t : tensors) {
          count++;
          if (std::string fault = value_fault(*store, numbers.find(t->name), reader, *t); !fault.empty())
            add(t->name, fault);
        }
      } catch (const Error& e) {
        if (e.code() == Code::kInterrupted) throw;
        add("",
            cat(counted(std::ssize(tensors), "tensor"), " could not be compared by values: ", e.message()));
      }
    }
    add({"tensors", Check::Status::kPass, count, "tensors"}, std::move(findings));
  }

  // Why the values of a tensor differ from the card; "" if they do not.
  std::string value_fault(const Store& store, i64 number, TensorReader& reader, const CardTensor& t) const {
    if (number < 0) return "the tensor is not there any more";
    if (dtype_name(store.dtype(number)) != t.dtype || !std::ranges::equal(store.dims(number), t.shape))
      return "the tensor has another type or shape than on the card";
    Sha256 sum;
    try {
      reader.read(number, [&](std::span<const u8> bytes, i64) {
        check_stop(observer_);
        sum.update(bytes);
      });
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      return cat("the values cannot be read: ", e.message());
    }
    return sum.hex_digest() == t.sha256 ? "" : "the values are not those of the card";
  }

  // Returns whether the file was read. A file of another size is not as on the card, whatever its bytes are.
  bool check_file(const CardFile& listed, i32 number, std::vector<Finding>& findings) const {
    auto count = [&](i64 bytes) {
      check_stop(observer_);
      observer_.done(bytes);
    };
    try {
      InputFile file = open(listed);
      if (file.size() == listed.bytes && sum_file(file, {}, count).sha256 == listed.sha256) return true;
      findings = changed_.find(file, number, [&](i64) { count(0); });
      return true;
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      findings.push_back(to_finding(e));
      findings.back().file = listed.name;
      return false;
    }
  }

  // Adds a check whose status is at least as bad as its findings are.
  void add(Check check, std::vector<Finding> findings) {
    check.status = std::max(check.status, status_of(findings));
    report_.add(std::move(check), std::move(findings));
  }

  const Card& card_;
  const std::string& path_;
  const CardCheck& options_;
  Observer& observer_;
  ChangedFile changed_;
  std::unique_ptr<Folder> folder_;  // none for a single file
  std::vector<char> there_;         // by file
  VerifyReport report_;
};

}  // namespace

VerifyReport check_card(const Card& card, const std::string& path, const CardCheck& options,
                        Observer& observer) {
  return CardChecker(card, path, options, observer).run();
}

}  // namespace mckpt::impl
