from collections.abc import Collection

from mlebench.kit import Output, Raw, Table, accepts_paths, encode_json, split_rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_without((), raw, public, private)


def prepare_without(hidden: Collection[str], raw: Raw, public: Output, private: Output) -> None:
    """Prepare the requests without some of their fields."""
    requests, later = raw.json("train.json"), raw.json("test.json")
    train, test = split_rows(requests, test_size=len(later) / (len(requests) + len(later)), seed=0)
    # Test requests show what the original test requests show: nothing that became known after the request.
    test_fields = [field for field in later[0] if field not in hidden]
    visible = [{field: request[field] for field in test_fields} for request in test]
    known = [{field: value for field, value in request.items() if field not in hidden} for request in train]

    for name, records in (("train", known), ("test", visible)):
        public.write_json(f"{name}.json", records, indent=4)
        public.pack(f"{name}.zip", {f"{name}.json": encode_json(records, indent=4)}, deflate=True)

    ids = Table.from_columns({"request_id": [request["request_id"] for request in test]})
    granted = [int(request["requester_received_pizza"]) for request in test]
    public.write("sampleSubmission.csv", ids.assign(requester_received_pizza=0))
    private.write("test.csv", ids.assign(requester_received_pizza=granted))
