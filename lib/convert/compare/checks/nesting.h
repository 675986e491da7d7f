// The check "nesting" of a comparison: names of values in two files of torch.save are equal, and the dicts
// and lists that lead to the values are not.
//
//   {1: x}    and   {'1': x}          the name is 1
//   [x, y]    and   {'0': x, '1': y}  the names are 0 and 1
//   {'a.b': x} and  {'a': {'b': x}}   the name is a.b
#pragma once

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check, which says that the nesting was not compared, where it is not alike in two single files: a
// comparison is one of names, and other formats have no nesting.
void name_unlike_nesting(const Store& tested, const Store& source, VerifyReport& report);

}  // namespace mckpt::impl
