// Reading is a search for the row that a byte is in, and a read of its part. Archives that are open are kept
// in the options with which they were opened, because a command opens the folder of a checkpoint a dozen
// times.
#include "io/archive/archive.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/names.h"
#include "io/file/path_stat.h"
#include "io/file/retried.h"

namespace mckpt::impl {
namespace {

constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string folder_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// The path of the file that may have an index: `path`, or a file in it; "" if there is no such file.
std::string index_path(const std::string& path) {
  const auto is_file = [](const std::optional<struct stat>& st) { return st && S_ISREG(st->st_mode); };
  const std::optional<struct stat> own = stat_of(path);
  if (is_file(own)) return path;
  std::string inside = cat(path, "/", kArchiveName);
  return own && S_ISDIR(own->st_mode) && is_file(stat_of(inside)) ? inside : "";
}

}  // namespace

Archive::Archive(InputFile first, std::string folder, const OpenOptions& opening)
    : stamp_(first.stamp()), folder_(std::move(folder)), opening_(opening) {
  opening_.containers = nullptr;  // an archive has no archives, and is not kept by what it keeps
  with_file(first.path(), [&] {
    place_ = index_place(first);
    index_ = read_archive_index(first, place_);
    if (index_.parts[0].bytes != first.size())
      throw Error(Code::kBadHdf5, "the archive was cut short, or something was added to it")
          .expected(cat(index_.parts[0].bytes, " bytes"))
          .found(cat(first.size(), " bytes"));
  });
  std::size_t row = 0;
  for (i64 f = 0; f < std::ssize(index_.files); f++) {
    names_.emplace(index_.files[f].name, f);
    first_row_.push_back(row);
    while (row < index_.rows.size() && index_.rows[row].file == f) row++;
  }
  first_row_.push_back(row);
  parts_.resize(index_.parts.size());
  parts_[0] = std::make_shared<const InputFile>(std::move(first));
}

i64 Archive::find(std::string_view name) const {
  auto at = names_.find(name);
  return at == names_.end() ? -1 : at->second;
}

bool Archive::has_folder(std::string_view name) const {
  if (name.empty()) return true;
  auto at = names_.lower_bound(cat(name, "/"));
  return at != names_.end() && at->first.starts_with(cat(name, "/"));
}

std::vector<FolderEntry> Archive::entries(std::string_view folder) const {
  std::string prefix = folder.empty() ? "" : cat(folder, "/");
  std::map<std::string, bool> found;  // by name: whether it is a folder
  for (auto at = names_.lower_bound(prefix); at != names_.end() && at->first.starts_with(prefix); at++) {
    std::string_view rest = std::string_view(at->first).substr(prefix.size());
    std::size_t slash = rest.find('/');
    found.emplace(rest.substr(0, slash), slash != rest.npos);
  }
  std::vector<FolderEntry> out;
  for (auto& [name, is_folder] : found) out.push_back({name, is_folder});
  std::ranges::sort(out, [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
  return out;
}

std::span<const ArchiveIndex::Row> Archive::rows(i64 file) const {
  return std::span(index_.rows).subspan(first_row_[file], first_row_[file + 1] - first_row_[file]);
}

void Archive::read(i64 file, i64 offset, std::span<u8> to) const {
  std::span<const ArchiveIndex::Row> own = rows(file);
  auto row = std::ranges::upper_bound(own, offset, {}, &ArchiveIndex::Row::begin);
  for (row--; !to.empty(); row++) {
    i64 n = std::min(row->end() - offset, std::ssize(to));
    part(row->part)->read(row->offset + (offset - row->begin), to.first(static_cast<std::size_t>(n)));
    to = to.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
}

// A part that is not open is looked at when it is opened.
void Archive::check_unchanged(i64 file) const {
  std::lock_guard lock(mutex_);
  parts_[0]->check_unchanged();
  i64 before = 0;
  for (const ArchiveIndex::Row& row : rows(file))
    if (i64 part = row.part; std::exchange(before, part) != part && parts_[part])
      parts_[part]->check_unchanged();
}

// The first part, which has the index, stays open.
std::shared_ptr<const InputFile> Archive::part(i64 number) const {
  std::lock_guard lock(mutex_);
  if (parts_[number]) return parts_[number];
  const ArchiveIndex::Part& wanted = index_.parts[number];
  auto opened = std::make_shared<const InputFile>(Folder(folder_, opening_).open_file(wanted.name));
  if (opened->size() != wanted.bytes)
    throw Error(Code::kReadFailed, "a file of the archive does not have the size that the index says")
        .file(opened->path())
        .expected(cat(wanted.bytes, " bytes"))
        .found(cat(opened->size(), " bytes"));
  if (open_.size() == kMostOpen) {
    parts_[open_.back()].reset();
    open_.pop_back();
  }
  open_.push_front(number);
  return parts_[number] = std::move(opened);
}

namespace {

// Archives by path, each as it was when it was opened.
class Archives final : public Containers {
 public:
  std::shared_ptr<const Container> at(const std::string& given, const OpenOptions& opening) override {
    const std::string plain_path = without_slashes(given), path = index_path(plain_path);
    if (path.empty()) return nullptr;
    int fd = retried([&] { return ::open(path.c_str(), kReadFlags); });
    if (fd < 0) return nullptr;
    OpenOptions plain = opening;
    plain.containers = nullptr;
    plain.stamps = nullptr;
    InputFile looked(fd, path, plain);
    if (!is_archive(looked)) return nullptr;
    std::shared_ptr<const Archive> archive = find(path, looked.stamp());
    if (!archive) {
      plain.stamps = opening.stamps;
      archive = std::make_shared<const Archive>(InputFile(path, plain), folder_of(path), opening);
      std::lock_guard lock(mutex_);
      archives_[path] = archive;
    }
    // A folder that has an archive of one file among others is a folder.
    return path == plain_path || archive->index().folder ? archive : nullptr;
  }

 private:
  std::shared_ptr<const Archive> find(const std::string& path, const FileStamp& stamp) {
    std::lock_guard lock(mutex_);
    auto at = archives_.find(path);
    return at != archives_.end() && at->second->stamp() == stamp ? at->second : nullptr;
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Archive>> archives_;
};

// Archives are the only containers.
std::shared_ptr<const Archive> as_archive(std::shared_ptr<const Container> container) {
  return std::static_pointer_cast<const Archive>(std::move(container));
}

}  // namespace

std::shared_ptr<Containers> new_containers() { return std::make_shared<Archives>(); }

std::shared_ptr<const Archive> open_archive(const std::string& path, const OpenOptions& opening) {
  return opening.containers ? as_archive(opening.containers->at(path, opening)) : nullptr;
}

std::optional<ArchivePlace> find_in_archive(const std::string& path, const OpenOptions& opening) {
  std::optional<PlaceInside> inside = find_inside(path, opening);
  if (!inside) return std::nullopt;
  return ArchivePlace{as_archive(std::move(inside->container)), std::move(inside->name)};
}

}  // namespace mckpt::impl
