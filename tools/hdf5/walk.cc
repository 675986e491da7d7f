// Walks groups and links without recursion into a group that was visited.
//
//   /a (group)  /a/w (dataset)  /b is /a again            kGroup a, kDataset a/w, kOther b
//   /c -> "a/w" (soft link)                               kSoftLink: mckpt resolves it
//   /d -> "other.h5" (external link)                      fault: other files are never opened
//
// Limits: groups nested 512 deep, names of 64 KiB. An object that cannot be read is a fault; the walk
// continues with the next link.
#include "hdf5/walk.h"

#include <set>
#include <utility>
#include <vector>

#include "hdf5/attributes.h"
#include "hdf5/dataset.h"
#include "hdf5/fd_driver.h"

namespace mckpt::impl {
namespace {

using hdf5_wire::Blame;
using hdf5_wire::Record;

using hdf5_wire::kMostDepth;
using hdf5_wire::kMostName;

// The state of the walk. `path` is the path of the group whose links are visited.
struct Walk {
  Answer& out;
  Effort effort;
  hid_t file;
  std::string path{};  // of the group that is visited
  int depth = 0;
  std::set<haddr_t> groups{};  // visited: a group may hold itself
};

herr_t visit_link(hid_t group, const char* name, const H5L_info_t* link, void* context);

// Reports what the library could not do; the walk continues.
void visit_group(Walk& walk, const std::string& path, hid_t group) {
  if (walk.depth == kMostDepth)
    return walk.out.fault(path, Blame::kUnsupported, "groups nested deeper than the limit of 512");
  std::string outer = std::exchange(walk.path, path);
  walk.depth++;
  if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, visit_link, &walk) < 0)
    walk.out.fault(path, Blame::kDamaged, "the group is corrupt: " + library_words());
  walk.depth--;
  walk.path = std::move(outer);
}

// A group, dataset or named type, opened by the address that a hard link names. A group that was visited
// under another name is not entered again.
void visit_object(Walk& walk, const std::string& path, haddr_t address) {
  Handle<H5Oclose> object(H5Oopen_by_addr(walk.file, address));
  if (!object) return walk.out.fault(path, Blame::kDamaged, library_words());
  H5I_type_t type = H5Iget_type(object);
  bool group = type == H5I_GROUP, again = group && !walk.groups.insert(address).second;
  if (type == H5I_DATASET) {
    answer_dataset(walk.out, walk.effort, path, address, object);
  } else if (group && !again) {
    walk.out.begin(Record::kGroup).text(path).number(address).end();
  } else {
    walk.out.begin(Record::kOther).text(path).byte(0);
    walk.out.text(group ? "another name of a group" : "a data type").end();
  }
  if (again) return;
  H5O_info_t info;
  if (H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) < 0) {
    walk.out.fault(path, Blame::kDamaged, library_words());
  } else if (info.num_attrs > 0) {
    answer_attributes(walk.out, walk.effort, path, object);
  }
  if (group) visit_group(walk, path, object);
}

// A link that holds a name: of something in this file, or in another.
void visit_name(Walk& walk, const std::string& path, hid_t group, const char* name, const H5L_info_t& link) {
  if (link.u.val_size > kMostName)
    return walk.out.fault(path, Blame::kDamaged, "the value of a link is too long");
  std::vector<char> value(link.u.val_size + 1);
  if (H5Lget_val(group, name, value.data(), link.u.val_size, H5P_DEFAULT) < 0)
    return walk.out.fault(path, Blame::kDamaged, library_words());
  if (link.type == H5L_TYPE_SOFT) {
    walk.out.begin(Record::kSoftLink).text(path).text(value.data()).end();
    return;
  }
  const char *file = nullptr, *object = nullptr;
  if (link.type != H5L_TYPE_EXTERNAL)
    return walk.out.fault(path, Blame::kUnsupported, "a link of a kind that a program defined for itself");
  if (H5Lunpack_elink_val(value.data(), link.u.val_size, nullptr, &file, &object) < 0)
    return walk.out.fault(path, Blame::kDamaged, library_words());
  walk.out.fault(path, Blame::kUnsupported,
                 std::string("an external link to ") + object + " of the file " + file);
}

herr_t visit_link(hid_t group, const char* name, const H5L_info_t* link, void* context) {
  Walk& walk = *static_cast<Walk*>(context);
  std::string path = walk.path.empty() ? name : walk.path + "/" + name;
  if (path.size() > kMostName) {
    walk.out.fault(walk.path, Blame::kUnsupported, "a name longer than the limit of 65536 bytes");
  } else if (link->type == H5L_TYPE_HARD) {
    visit_object(walk, path, link->u.address);
  } else {
    visit_name(walk, path, group, name, *link);
  }
  return 0;
}

}  // namespace

void answer_file(Answer& out, hid_t file) {
  Handle<H5Gclose> root(H5Gopen2(file, "/", H5P_DEFAULT));
  H5O_info_t info;
  if (!root || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0)
    return out.fault("", Blame::kDamaged, library_words());
  Walk walk{out, Effort(input_bytes()), file};
  walk.groups.insert(info.addr);
  answer_attributes(out, walk.effort, "", root);
  visit_group(walk, "", root);
}

}  // namespace mckpt::impl
