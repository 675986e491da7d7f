// Calls of classes and functions: containers and bytes are built, everything else stays a record of the name
// and the arguments.
//
//   collections OrderedDict, ()              ->  an empty dict
//   torch Size, ((2, 3),)                    ->  the tuple (2, 3)
//   _codecs encode, ("\xff", "latin1")       ->  bytes
//   torch._utils _rebuild_tensor_v2, (...)   ->  object {type, args}: io/torch reads it as a tensor
//   os system, ("...",)                      ->  object {type, args}, and a note that this is unsafe
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "io/pickle/machine.h"
#include "io/pickle/text.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostClasses = 10'000;
constexpr int kMostHashed = 1000, kDeepestHashed = 8;  // of the values of one key

// Whether objects of the class may be filled like a dict or a list: its base class may be one. A deque with a
// greatest length is such an object.
bool may_hold_items(const PickleClass& c) {
  return c.known == Known::kNothing || c.known == Known::kDictLike || c.known == Known::kList;
}

bool rebuilds_tensor(Known k) { return k >= Known::kRebuildTensor && k <= Known::kRebuildOther; }

// Records of torch's checkpoints, which take their fields from a dict. The properties of tensors have a way of
// their own, a tuple.
bool takes_fields(const PickleClass& c) {
  return c.trust == Trust::kListed && c.known != Known::kTensorProperties &&
         (c.module == "torch.distributed.checkpoint.metadata" ||
          c.module == "torch.distributed.checkpoint.planner");
}

}  // namespace

// The class of that name, new the first time. Throws kPickleLimit at too many.
PickleValue PickleMachine::find_class(std::string_view module, std::string_view name) {
  std::string key = cat(module, "\n", name);
  if (auto it = class_values_.find(key); it != class_values_.end()) return it->second;
  if (out_.classes_.size() >= kMostClasses)
    throw Error(Code::kPickleLimit, "the pickle names too many classes")
        .expected(cat("at most ", kMostClasses));
  std::span<u8> kept = arena_.copy({reinterpret_cast<const u8*>(key.data()), key.size()});
  std::string_view both(reinterpret_cast<const char*>(kept.data()), kept.size());
  PickleClass& c = out_.classes_.emplace_back();
  c.module = both.substr(0, module.size());
  c.name = both.substr(module.size() + 1);
  c.offset = opcode_at();
  classify(c);
  return class_values_[both] = PickleArena::class_value(c);
}

// REDUCE, NEWOBJ and their kin: checks the two, and counts the call.
PickleValue PickleMachine::call(PickleValue callee, PickleValue args) {
  if (!callee.is(Kind::kClass)) fail(cat("it calls ", kind_name(callee.kind()), ", not a class or function"));
  if (!args.is(Kind::kTuple))
    fail(cat("the arguments of a call are ", kind_name(args.kind()), ", not a tuple"));
  PickleClass& c = PickleArena::class_of(callee);
  if (is_torch_value(c)) fail(cat("it calls ", c.module, ".", c.name, ", not a class or function"));
  c.calls++;
  return construct(c, args);
}

// Arguments that only served to build a container are freed.
PickleValue PickleMachine::construct(PickleClass& c, PickleValue args) {
  PickleValue out;
  switch (c.known) {
    case Known::kDict:
      out = make_dict(args);
      break;
    case Known::kBytes:
      out = make_bytes(args);
      break;
    case Known::kEncode:
      out = encode(args);
      break;
    case Known::kGetattr:
      return get_member(c, args);
    case Known::kTuple:
    case Known::kList:
    case Known::kSet:
      // deque((), 5) holds no more than 5 items, which is more than a list can say.
      if (c.known == Known::kList && !args.at(1).is_none()) return arena_.object(Kind::kObject, &c, args);
      out = make_sequence(c.known, args);
      break;
    case Known::kMake:
      return make_object(c, args);
    case Known::kDictLike:  // Counter(["a", "a", "b"]) makes keys of items
      for (PickleValue item : args.at(0).items()) check_key(item);
      return arena_.object(Kind::kObject, &c, args);
    default:
      return arena_.object(Kind::kObject, &c, args);
  }
  give_up(args, PickleArena::given_up());
  return c.is_second_type() ? PickleArena::of_second_type(out) : out;
}

// torch.Size((2, 3)), set([...]), deque([...]).
PickleValue PickleMachine::make_sequence(Known known, PickleValue args) {
  PickleValue from = args.at(0);
  if (args.size() > 0 && !from.is(Kind::kTuple) && !from.is(Kind::kList) && !from.is(Kind::kSet))
    fail(cat("a sequence is made of ", kind_name(from.kind())));
  if (known == Known::kTuple && from.is(Kind::kTuple)) {
    if (args.node()->shared) PickleArena::share(from);
    return from.as_first_type();
  }
  std::vector<PickleValue> items(from.items().begin(), from.items().end());
  share_all(items);
  if (known == Known::kTuple) return arena_.tuple(items);
  const Kind kind = known == Known::kList ? Kind::kList : Kind::kSet;
  PickleValue out = arena_.container(kind);
  add_items(out, items, kind);
  return out;
}

// dict(), OrderedDict(), OrderedDict([[key, value], ...]), dict(another).
PickleValue PickleMachine::make_dict(PickleValue args) {
  PickleValue out = arena_.container(Kind::kDict), from = args.at(0);
  if (args.size() == 0) return out;
  if (args.size() > 1 || (!from.is(Kind::kList) && !from.is(Kind::kTuple) && !from.is(Kind::kDict)))
    fail("a dict is made of something that is not a list of pairs");
  auto add = [&](PickleValue key, PickleValue value) {
    std::array entry{key, value};
    share_all(entry);
    set_entries(out, entry);
  };
  for (PickleEntry e : from.entries()) add(e.key, e.value);
  for (PickleValue pair : from.items()) {
    if (pair.size() != 2 || (!pair.is(Kind::kTuple) && !pair.is(Kind::kList)))
      fail("a dict is made of something that is not a list of pairs");
    PickleValue::Items::Iterator it = pair.items().begin();
    PickleValue key = *it++;
    add(key, *it);
  }
  return out;
}

// copyreg._reconstructor(class, base, state), copyreg.__newobj__(class, ...).
PickleValue PickleMachine::make_object(PickleClass& maker, PickleValue args) {
  PickleValue type = args.at(0);
  if (!type.is(Kind::kClass)) fail(cat(maker.name, " makes an object of ", kind_name(type.kind())));
  PickleClass& c = PickleArena::class_of(type);
  c.calls++;
  share_all(args.tuple());
  return arena_.object(Kind::kObject, &c, arena_.tuple(args.tuple().subspan(1)));
}

// bytes(), bytes("text", "latin1"), bytes(b"..."), bytearray(b"..."). A number alone would be a claim for
// memory.
PickleValue PickleMachine::make_bytes(PickleValue args) {
  PickleValue first = args.at(0);
  if (args.size() == 0) return arena_.bytes(Kind::kBytes, {});
  if (first.is(Kind::kText)) return encode(args);
  if (args.size() == 1 && first.is(Kind::kBytes)) return arena_.bytes(Kind::kBytes, first.bytes());
  if (first.is_int())
    throw Error(Code::kPickleLimit,
                "bytes are made from a number alone, which could demand any amount of memory")
        .offset(opcode_at())
        .found(first.as_int());
  fail(cat("bytes are made of ", kind_name(first.kind())));
}

// Picklers write bytes under protocol 2 as text to be encoded as Latin-1. Python would import any other
// codec.
PickleValue PickleMachine::encode(PickleValue args) {
  PickleValue text = args.at(0), codec = args.at(1);
  bool latin1 = codec.is(Kind::kText) && (codec.text() == "latin1" || codec.text() == "latin-1");
  if (!text.is(Kind::kText) || !latin1)
    throw Error(Code::kUnsupportedPickle, "the pickle encodes text by a codec other than latin1, unsupported")
        .offset(opcode_at())
        .found(codec.is(Kind::kText) ? escaped(codec.text()) : std::string(kind_name(codec.kind())));
  std::optional<std::string> bytes = latin1_encoded(text.text());
  if (!bytes) fail("a text is encoded as Latin-1, but has other characters");
  return arena_.bytes(Kind::kBytes, arena_.copy({reinterpret_cast<const u8*>(bytes->data()), bytes->size()}));
}

// Some Python versions write an enum's member as getattr(class, "NAME"), and protocol 2 a class inside a
// listed one: getattr(ShardedTensor, "ProcessGroupState"). Anything else that getattr could reach is not
// data.
PickleValue PickleMachine::get_member(PickleClass& getattr, PickleValue args) {
  PickleValue owner = args.at(0), name = args.at(1);
  if (args.size() == 2 && owner.is(Kind::kClass) && name.is(Kind::kText)) {
    PickleClass& c = PickleArena::class_of(owner);
    if (c.known == Known::kShardedTensor) return find_class(c.module, cat(c.name, ".", name.text()));
    if (!unsafe_to_call(c) && !name.text().starts_with("__")) {
      c.calls++;
      return arena_.member(&c, name);
    }
  }
  out_.notes_.push_back(
      {Code::kUnsafePickle, "getattr names something that is not the member of an enum", opcode_at()});
  return arena_.object(Kind::kObject, &getattr, args);
}

// BUILD gives a state to the object below it, or attributes to a dict. A field that changes what Python
// runs is noted.
void PickleMachine::build(PickleValue state) {
  PickleValue& target = top();
  for (PickleEntry e : state.entries())
    if (e.key.is(Kind::kText) && is_special_field(e.key.text()))
      out_.notes_.push_back(
          {Code::kUnsafePickle,
           cat("an object's state (BUILD) holds ", e.key.text(), ", which changes what Python runs"),
           opcode_at()});
  if (target.is(Kind::kDict)) {
    // Python has no place for the attributes of a plain dict, and updates the others from a dict alone.
    if (!target.is_second_type()) fail("BUILD gives attributes to a dict that is not an OrderedDict");
    if (!state.is(Kind::kDict))
      fail(cat("BUILD gives a dict attributes that are no dict: ", kind_name(state.kind())));
    if (!target.attributes().is_none()) fail("BUILD gives a dict attributes twice");
    return arena_.set_attributes(target, state);
  }
  if (!target.is(Kind::kObject)) fail(cat("BUILD gives a state to ", kind_name(target.kind())));
  const PickleObject& o = target.as_object();
  if (!o.state.is_none()) fail("BUILD gives an object its state twice");
  if (rebuilds_tensor(o.type->known)) fail("BUILD gives a state to a tensor");
  if (takes_fields(*o.type) && (state.is(Kind::kList) || state.is(Kind::kText) || state.is_int()))
    fail(cat("BUILD gives ", o.type->name, " a state that is no dict: ", kind_name(state.kind())));
  if (rules_.visitor != nullptr) {
    if (std::optional<u64> number = rules_.visitor->build(o, state)) {
      give_up_parts(state);
      if (state.is(Kind::kDict) || state.is(Kind::kTuple)) give_up(state, PickleArena::given_up());
      return replace(target, *number);
    }
  }
  arena_.set_state(target, state);
}

// Gives up what the visitor wants of a state that it took. A state that has another owner keeps its parts.
void PickleMachine::give_up_parts(PickleValue state) {
  const PickleNode* node = state.container();
  if (node == nullptr || node->shared) return;
  auto give_up_part = [&](PickleValue part) {
    if (part.container() == nullptr || part.container()->shared) return;
    if (std::optional<u64> number = rules_.visitor->part(part)) {
      if (part.is(Kind::kDict)) give_up_parts(part);
      give_up(part, PickleArena::row(*number));
    }
  };
  for (PickleValue part : state.tuple()) give_up_part(part);
  for (PickleEntry e : state.entries()) give_up_part(e.value);
}

// A visitor took the object. It and its dict are freed unless they are referred to elsewhere; then they
// stay, with the visitor's number as state.
void PickleMachine::replace(PickleValue& target, u64 number) {
  PickleValue row = PickleArena::row(number);
  if (give_up(target, row))
    target = row;
  else
    arena_.set_state(target, row);
}

// The container of this kind to fill: the target itself, or the one that an object of a subclass holds.
PickleValue PickleMachine::items_of(PickleValue target, Kind kind) {
  if (target.is(kind)) return target;
  if (!target.is(Kind::kObject) || !may_hold_items(*target.as_object().type))
    fail(cat("an opcode that fills ", kind_name(kind), " (SETITEM, APPEND, ADDITEMS) finds ",
             kind_name(target.kind())));
  PickleValue items = target.as_object().items;
  if (items.is(kind)) return items;
  if (!items.is_none()) fail("an object is filled as a list and as a dict");
  items = arena_.container(kind);
  arena_.set_items(target, items);
  return items;
}

void PickleMachine::set_entries(PickleValue target, std::span<const PickleValue> kv) {
  if (kv.size() % 2 != 0) fail("a dict is filled with a key that has no value");
  PickleValue dict = items_of(target, Kind::kDict);
  for (std::size_t i = 0; i < kv.size(); i += 2) check_key(kv[i]);
  arena_.append(dict, kv);
}

void PickleMachine::add_items(PickleValue target, std::span<const PickleValue> items, Kind kind) {
  PickleValue to = items_of(target, kind);
  if (kind == Kind::kSet)
    for (PickleValue item : items) {
      int left = kMostHashed;
      check_hash(item, "an item of a set", kDeepestHashed, left);
    }
  arena_.append(to, items);
}

// Python would hash the key, which can take for ever on tuples of shared tuples, so such keys are refused.
void PickleMachine::check_key(PickleValue key) const {
  int left = kMostHashed;
  if (!key.is(Kind::kText) && !check_hash(key, "a dictionary key", kDeepestHashed, left))
    throw Error(Code::kPickleLimit, "a dictionary key of the pickle is nested too deep").offset(opcode_at());
}

// Python has no hash of what can change: of lists, dicts, sets that are not frozen, byte arrays. False: not all of the
// value was looked at.
bool PickleMachine::check_hash(PickleValue v, std::string_view what, int depth, int& left) const {
  if (depth == 0 || left-- == 0) return false;
  if (v.is(Kind::kList) || v.is(Kind::kDict) || (v.is(Kind::kSet) && !v.is_second_type()))
    fail(cat(what, " is ", kind_name(v.kind())));
  if (v.is(Kind::kBytes) && v.is_second_type()) fail(cat(what, " is a bytearray"));
  if (v.is(Kind::kObject) && v.as_object().type->known == Known::kDictLike)
    fail(cat(what, " is a ", v.as_object().type->name));
  return std::ranges::all_of(v.tuple(),
                             [&](PickleValue part) { return check_hash(part, what, depth - 1, left); });
}

// A persistent id names data outside the pickle; the only kind there is, is a tensor's storage: ('storage',
// class, key, device, items). Throws kUnsupportedPickle for others.
PickleValue PickleMachine::storage(PickleValue id) {
  if (!rules_.storages) fail("it has a persistent id, which only tensors of torch files have");
  PickleValue kind = id.at(0);
  if (!kind.is(Kind::kText) || kind.text() != "storage")
    throw Error(Code::kUnsupportedPickle,
                kind.is(Kind::kText)
                    ? cat("a persistent id names a '", escaped(kind.text()), "', not a storage: unsupported")
                    : "a persistent id does not name a storage: unsupported")
        .offset(opcode_at());
  PickleValue out = arena_.object(Kind::kStorage, nullptr, id);
  arena_.account(sizeof(PickleValue));
  out_.storages_.push_back(out);
  return out;
}

}  // namespace mckpt::impl
