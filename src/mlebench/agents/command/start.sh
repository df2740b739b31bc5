#!/bin/bash
exec bash -c "$1"
