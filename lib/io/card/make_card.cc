// First the tensors: all checkpoints of the folder are opened, and every chunk is resolved to a part of a
// file. Then the parts: every file is read once for its own sum and the sums of its parts. Last the tensors
// that are more than one part.
#include "io/card/make_card.h"

#include <algorithm>
#include <map>
#include <memory>
#include <queue>
#include <set>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/card/card_files.h"
#include "io/copy/observed_sink.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/file/place.h"
#include "io/json/json.h"
#include "io/store/open/beside.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/sums/sha256.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostOverlapping = 16;

// The name of the folder or file itself: of "a/ckpt/" and of "." in a folder ckpt it is "ckpt".
std::string own_name(const std::string& path) {
  std::string real = real_path_of(path);
  return real.substr(real.find_last_of('/') + 1);
}

// The stored bytes of a chunk: from its first item to its last.
FilePart stored_part(const Chunk& chunk, const ChunkData& data) {
  if (data.unpacked)
    return chunk.record_offset < 0 ? FilePart{} : FilePart{chunk.record_offset, chunk.record_bytes};
  i64 items = Shape(chunk.sizes).items();
  if (items > 0 && !data.strides.empty()) {
    items = 1;
    for (std::size_t d = 0; d < data.strides.size(); d++)
      items = checked_add(items, checked_mul(chunk.sizes[d] - 1, data.strides[d], "a chunk"), "a chunk");
  }
  return {data.offset, items > 0 ? dtype_bytes(data.dtype, items) : 0};
}

// One card.
class CardMaker {
 public:
  CardMaker(const std::string& path, const CardOptions& options, Observer& observer)
      : path_(path), options_(options), observer_(observer) {}

  Card run() {
    card_.name = own_name(path_);
    card_.single_file = !is_folder(path_, as_files(options_.opening));
    open_all();
    list_files();
    for (const Opened& o : stores_) place_tensors(o);
    sum_files();
    sum_tensors();
    return std::move(card_);
  }

 private:
  // A checkpoint of the folder.
  struct Opened {
    std::unique_ptr<Store> store;
    std::string path;  // below the folder; "" for the folder's own
  };

  // A file that is another one too, by a link.
  struct Link {
    i32 file, same;
  };

  void open_all() {
    open_at(path_, "");
    if (stores_.empty()) return;
    card_.format = format_text(stores_[0].store->format());
    if (stores_[0].path.empty()) card_.facts = stores_[0].store->facts();
  }

  // Opens what is at a path, and the checkpoints beside it. A file that cannot be opened has no tensors here;
  // verify reports why.
  void open_at(const std::string& path, const std::string& below) {
    if (!visited_.insert(real_path_of(path)).second) return;
    const Store* store = nullptr;
    try {
      Opened opened{open_store(path, options_.opening), below};
      visited_.insert(real_path_of(opened.store->root()));
      store = opened.store.get();
      stores_.push_back(std::move(opened));
    } catch (const Error& e) {
      if (below.empty() && (e.code() == Code::kNotFound || e.code() == Code::kReadFailed)) throw;
    }
    for (const Beside& b : list_beside(path, store, options_.opening)) {
      std::string name = below.empty() ? b.path : cat(below, "/", b.path);
      if (b.kind == Beside::Kind::kCheckpoint) open_at(cat(path, "/", b.path), name);
      if (b.reason == "another iteration") left_out_.push_back(name);
    }
  }

  void list_files() {
    if (card_.single_file) {
      card_.files.push_back({{card_.name, InputFile(path_, options_.opening).size()}});
      by_real_path_.emplace(real_path_of(path_), 0);
      return;
    }
    folder_ = std::make_unique<Folder>(path_, as_files(options_.opening));
    std::vector<std::string> cards;
    for (const std::string& card : options_.left_out)
      if (std::string name = name_inside(path_, card); !name.empty()) cards.push_back(name);
    left_out_.insert(left_out_.end(), cards.begin(), cards.end());
    CardFiles files = card_files(*folder_, left_out_);
    card_.ignored = std::move(files.ignored);
    // Cards that are written together, into the folder itself, leave each other out, and say so.
    for (const std::string& name : cards)
      if (std::ranges::find(card_.ignored, name) == card_.ignored.end()) card_.ignored.push_back(name);
    for (std::string& name : files.names) {
      if (!is_utf8(name))
        throw Error(Code::kBadCard, "a card cannot list a file whose name is not UTF-8").file(escaped(name));
      i32 number = static_cast<i32>(card_.files.size());
      i32 same = by_real_path_.emplace(real_path_of(cat(path_, "/", name)), number).first->second;
      if (same != number) links_.push_back({number, same});
      i64 bytes = folder_->file_bytes(name).value_or(0);
      card_.files.push_back({{std::move(name), bytes}});
    }
  }

  // The card's tensors of one store, each with its parts.
  void place_tensors(const Opened& opened) {
    const Store& store = *opened.store;
    std::vector<i32> file_of;
    for (std::size_t f = 0; f < store.files().size(); f++) {
      auto at = by_real_path_.find(real_path_of(file_path(store, static_cast<i32>(f))));
      file_of.push_back(at == by_real_path_.end() ? -1 : at->second);
    }
    std::size_t first = card_.tensors.size();
    card_.tensors.resize(first + static_cast<std::size_t>(store.tensor_count()));
    whole_.resize(card_.tensors.size());
    parallel_for(store.tensor_count(), options_.threads, [&](int, i64 t) {
      CardTensor& to = card_.tensors[first + static_cast<std::size_t>(t)];
      to.name = store.name(t);
      to.checkpoint = opened.path;
      to.dtype = dtype_name(store.dtype(t));
      to.shape.assign(store.dims(t).begin(), store.dims(t).end());
      whole_[first + static_cast<std::size_t>(t)] = place_chunks(store, t, file_of, to);
    });
    first_.push_back(first);
  }

  // Returns whether the first chunk has all values of the tensor, as they are.
  bool place_chunks(const Store& store, i64 t, const std::vector<i32>& file_of, CardTensor& to) const {
    bool whole = false;
    for (i64 i = 0; i < store.chunk_count(t); i++) {
      Chunk chunk = store.chunk(t, i);
      try {
        ChunkData data = store.resolve(t, i);
        FilePart part = stored_part(chunk, data);
        i32 file = data.file < 0 ? -1 : file_of[data.file];
        if (part.bytes == 0 && Shape(chunk.sizes).items() == 0) continue;
        if (file < 0 || part.bytes == 0 || part.offset < 0 ||
            part.bytes > card_.files[file].bytes - part.offset) {
          to.located = false;
          continue;
        }
        to.chunks.push_back({file, part.offset, part.bytes});
        bool plain = !data.unpacked && data.strides.empty() && !data.big_endian;
        whole |= i == 0 && plain && std::ranges::equal(chunk.sizes, store.dims(t));
      } catch (const Error&) {
        to.located = false;  // verify reports it
      }
    }
    return whole;
  }

  // Reads every file once.
  void sum_files() {
    observer_.begin("card", card_.bytes());
    std::vector<std::vector<FilePart>> parts(card_.files.size());
    for (const CardTensor& t : card_.tensors)
      for (const CardChunk& c : t.chunks) parts[c.file].push_back({c.offset, c.bytes});
    for (std::vector<FilePart>& of_file : parts) make_sums_few(of_file);
    std::vector<std::size_t> largest_first;
    for (const auto& [path, f] : by_real_path_) largest_first.push_back(static_cast<std::size_t>(f));
    std::ranges::sort(largest_first);
    std::ranges::stable_sort(largest_first, std::greater(),
                             [&](std::size_t f) { return card_.files[f].bytes; });
    std::vector<std::vector<std::string>> digests(card_.files.size());
    parallel_for(std::ssize(largest_first), options_.threads, [&](int, i64 i) {
      std::size_t f = largest_first[i];
      InputFile file = folder_ ? folder_->open_file(card_.files[f].name) : InputFile(path_, options_.opening);
      if (file.size() != card_.files[f].bytes) file.throw_changed();
      FileSums sums = sum_file(file, parts[f], [&](i64 bytes) { count(bytes); });
      card_.files[f].sha256 = std::move(sums.sha256);
      card_.files[f].others = std::move(sums.others);
      digests[f] = std::move(sums.parts);
    });
    for (const Link& l : links_) {
      card_.files[l.file].sha256 = card_.files[l.same].sha256;
      card_.files[l.file].others = card_.files[l.same].others;
    }
    for (std::size_t t = 0; t < card_.tensors.size(); t++) take_digests(t, parts, digests);
    observer_.end();
  }

  // Leaves each part once, and takes those out that are inside of too many others: they would cost a sum
  // each.
  static void make_sums_few(std::vector<FilePart>& parts) {
    std::ranges::sort(parts);
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    std::priority_queue<i64, std::vector<i64>, std::greater<>> ends;
    std::erase_if(parts, [&](const FilePart& p) {
      while (!ends.empty() && ends.top() <= p.offset) ends.pop();
      if (ends.size() == kMostOverlapping) return true;
      ends.push(p.offset + p.bytes);
      return false;
    });
  }

  // A chunk without a sum is taken out: the tensor is known by its values alone.
  void take_digests(std::size_t t, const std::vector<std::vector<FilePart>>& parts,
                    const std::vector<std::vector<std::string>>& digests) {
    CardTensor& tensor = card_.tensors[t];
    auto erased = std::erase_if(tensor.chunks, [&](CardChunk& c) {
      FilePart part{c.offset, c.bytes};
      auto at = std::ranges::lower_bound(parts[c.file], part);
      if (at == parts[c.file].end() || *at != part) return true;
      c.sha256 = digests[c.file][at - parts[c.file].begin()];
      return false;
    });
    if (erased > 0) tensor.located = false, whole_[t] = false;
  }

  void sum_tensors() {
    for (std::size_t t = 0; t < card_.tensors.size(); t++)
      if (whole_[t]) card_.tensors[t].sha256 = card_.tensors[t].chunks[0].sha256;
    for (std::size_t s = 0; s < stores_.size(); s++) sum_rest(s);
  }

  // Reads the tensors of a store that are sharded, at strides or compressed.
  void sum_rest(std::size_t s) {
    const Store& store = *stores_[s].store;
    std::vector<i64> tensors;
    i64 bytes = 0;
    for (i64 t = 0; t < store.tensor_count(); t++) {
      if (whole_[first_[s] + static_cast<std::size_t>(t)]) continue;
      tensors.push_back(t);
      for (const CardChunk& c : card_.tensors[first_[s] + static_cast<std::size_t>(t)].chunks)
        bytes += c.bytes;
    }
    if (tensors.empty()) return;
    observer_.begin("card of tensors", bytes);
    StoreFiles files(store);
    std::vector<std::unique_ptr<TensorReader>> readers;
    for (int i = 0; i < options_.threads; i++)
      readers.push_back(std::make_unique<TensorReader>(store, files));
    parallel_for(std::ssize(tensors), options_.threads, [&](int worker, i64 i) {
      Sha256 sum;
      try {
        readers[worker]->read(tensors[i], [&](std::span<const u8> part, i64) {
          sum.update(part);
          count(std::ssize(part));
        });
        card_.tensors[first_[s] + static_cast<std::size_t>(tensors[i])].sha256 = sum.hex_digest();
      } catch (const Error& e) {
        if (e.code() == Code::kInterrupted) throw;
      }
    });
    observer_.end();
  }

  void count(i64 bytes) {
    check_stop(observer_);
    observer_.done(bytes);
  }

  const std::string& path_;
  const CardOptions& options_;
  Observer& observer_;
  Card card_;
  std::vector<Opened> stores_;
  std::vector<std::size_t> first_;  // by store: its first tensor in the card
  std::vector<char> whole_;         // by tensor of the card: its first chunk has all its values
  std::set<std::string> visited_;   // real paths
  std::vector<std::string> left_out_;
  std::unique_ptr<Folder> folder_;           // none for a single file
  std::map<std::string, i32> by_real_path_;  // the first file of the path
  std::vector<Link> links_;
};

}  // namespace

Card make_card(const std::string& path, const CardOptions& options, Observer& observer) {
  return CardMaker(path, options, observer).run();
}

}  // namespace mckpt::impl
