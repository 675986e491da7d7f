// The fact that a folder is published: that mckpt wrote all of it, made it durable, and was about to give it
// the name of the result, or has done so. The fact is written into the folder before the rename, as the first
// line of .plan, so that it does not depend on the name that the folder has:
//
//   reshard 3f5a...e1           begun: some or all files may be holes
//
//   complete 1234 1763884800 5000 listed          all of it was written. The folder's identity, and whether it
//   reshard 3f5a...e1                             has a manifest ("unlisted": it has none)
//
// A folder that got the name of a result in another way (an unfinished one that was moved there, a copy of a
// published one that was not copied to the end) has another first line, or files that are not there.
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

// Says that all of the folder is written. Returns 0 or an errno. pre: it is durable, if it has to be; the
// name of the mark is made durable by the caller.
int mark_complete(const std::string& folder, std::string_view plan, bool durable);
// Takes that back, before anything in the folder is written anew. Returns 0 or an errno.
int mark_begun(const std::string& folder, std::string_view plan, bool durable);

// The plan in the text of .plan, without the line about completeness.
std::string_view plan_of(std::string_view text);
// Whether the text of .plan says that a folder, this one or one that it is a copy of, was complete.
bool says_complete(std::string_view text);
// Whether the folder is complete, by this plan: .plan says so of this folder, and every file in the manifest
// is there with its size. Where data were written without fsync, only until the system starts again.
bool is_published(const std::string& folder, const std::string& plan);
// Whether this folder was published, of data that were written without fsync, and the system has started
// again since: nothing tells whether the disk has all of it.
bool was_published_before_start(const std::string& folder);

}  // namespace mckpt::impl
